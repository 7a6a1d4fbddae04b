# Turns a text file into a .cpp with the function that gives its text. Called with -DINPUT=file -DOUTPUT=file -DFUNCTION=name -DNAMESPACE=name
# -DHEADER=path.
file(READ ${INPUT} text)
file(WRITE ${OUTPUT} "// Made by embed_text.cmake.\n#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\nstd::string_view ${FUNCTION}() { return R\"python(${text})python\"; }\n}  // namespace ${NAMESPACE}\n")
