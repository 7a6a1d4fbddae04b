// YamlEvents: builds the tree of nodes from the events of yaml-cpp, with a cursor that goes over the text at each
// event. What yaml-cpp leaves out, adds or takes though it is wrong is met there and refused with its place.
#pragma once
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>

#include <string>

#include "orchestrator/grid/yaml_structure.h"
#include "orchestrator/grid/yaml_tree.h"

namespace sweep::grid {

class YamlEvents final : public YAML::EventHandler {
 public:
  explicit YamlEvents(std::string_view text) : at_(text) {}

  // Before the first event and behind the last one: no directive, no second document. They throw a YamlRefusal,
  // as each event does.
  void begin();
  NodePtr finish();
  [[noreturn]] void explain(const YAML::Exception& exception);

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t anchor) override;
  void OnAlias(const YAML::Mark&, YAML::anchor_t anchor) override;
  void OnScalar(const YAML::Mark&, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override;
  void OnSequenceStart(const YAML::Mark&, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override;
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark&, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override;
  void OnMapEnd() override { close(); }

 private:
  using Style = YamlStructure::Style;

  void to_collection(YAML::anchor_t anchor);
  void close();
  void add(const YamlToken& token);

  YamlStructure at_;
  YamlTree tree_;
};

}  // namespace sweep::grid
