# Vega for the heatmap page: the modules of the Debian package libjs-vega that a drawing needs, as one script.
# The package has no single file of Vega, and its modules overwrite each other when loaded as plain scripts: each is
# wrapped as the CommonJS module it also is, and vegaRequire(name) loads it when it is first asked for.
set(SWEEP_VEGA_MODULES util time format loader dataflow statistics scale canvas scenegraph expression event-selector
    selection functions encode transforms view-transforms runtime interpreter parser view)

# sweep_vega_script(<variable> <folder>): the script's text, and the folder of the modules.
function(sweep_vega_script variable)
  find_path(SWEEP_VEGA vega-view.min.js PATHS /usr/share/javascript/vega /usr/share/nodejs/vega
            DOC "The folder with Vega's modules (Debian package libjs-vega)" NO_CMAKE_FIND_ROOT_PATH)
  if(NOT SWEEP_VEGA)
    message(FATAL_ERROR "Vega is not here: install the Debian package libjs-vega (scripts/setup does), or name the folder "
      "that holds vega-view.min.js with -DSWEEP_VEGA=DIR.")
  endif()
  set(script "// Vega, copyright 2015-2021 UW Interactive Data Lab, BSD-3-Clause; contains D3, copyright 2010-2021 Mike Bostock, ISC.\n")
  string(APPEND script "\"use strict\";\nconst vegaModules = {};\nconst vegaRequire = (name) => {\n"
    "  const m = vegaModules[name];\n  if (!m.exports) { m.exports = {}; m.load.call(globalThis, m.exports, vegaRequire, m); }\n"
    "  return m.exports;\n};\n")
  foreach(module IN LISTS SWEEP_VEGA_MODULES)
    file(READ ${SWEEP_VEGA}/vega-${module}.min.js text)
    string(REGEX REPLACE "//# sourceMappingURL=[^\n]*" "" text "${text}")
    set(name vega-${module})
    if(module STREQUAL "selection")
      set(name vega-selections)  # as the other modules ask for it
    endif()
    string(APPEND script "vegaModules[\"${name}\"] = { load(exports, require, module) {\n${text}\n} };\n")
  endforeach()
  if(script MATCHES "</script|<!--|\\)asset\"")
    message(FATAL_ERROR "${SWEEP_VEGA}: this Vega cannot be put into a page: it holds the end of a script or of a comment.")
  endif()
  set(${variable} "${script}" PARENT_SCOPE)
endfunction()
