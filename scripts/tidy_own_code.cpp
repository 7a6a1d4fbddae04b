// A plug-in of clang-tidy 14 (--load): checks match the repository's own declarations alone, not those in headers of libraries.
#include <clang/AST/ASTConsumer.h>
#include <clang/AST/ASTContext.h>
#include <clang/Frontend/FrontendPluginRegistry.h>

namespace {

class Consumer : public clang::ASTConsumer {
 public:
  void HandleTranslationUnit(clang::ASTContext& context) override {
    std::vector<clang::Decl*> own;
    for (clang::Decl* each : context.getTranslationUnitDecl()->decls())
      if (!context.getSourceManager().isInSystemHeader(each->getLocation())) own.push_back(each);
    context.setTraversalScope(own);
  }
};

class Action : public clang::PluginASTAction {
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance&, llvm::StringRef) override {
    return std::make_unique<Consumer>();
  }
  bool ParseArgs(const clang::CompilerInstance&, const std::vector<std::string>&) override { return true; }
  ActionType getActionType() override { return AddBeforeMainAction; }
};

const clang::FrontendPluginRegistry::Add<Action> kRegistered("own-code", "looks at no headers of libraries");

}  // namespace
