# sweep_embed_texts(<room> <Type> <function> <header> <pattern>): the files of a pattern below this folder travel inside the program.
# function() of namespace sweep::<room>, which the header declares, gives a span of Type{name, text}, in the order of the names.
# A file is named without its extension; where the pattern is */NAME, by its folder.
function(sweep_embed_texts room type function header pattern)
  file(GLOB files CONFIGURE_DEPENDS ${pattern})
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed_texts.cmake)
  set(embedded ${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp)
  add_custom_command(OUTPUT ${embedded}
    COMMAND ${CMAKE_COMMAND} -DPATTERN=${CMAKE_CURRENT_SOURCE_DIR}/${pattern} -DOUTPUT=${embedded} -DROOM=${room} -DTYPE=${type}
            -DFUNCTION=${function} -DHEADER=${header} -P ${script}
    DEPENDS ${files} ${script} VERBATIM)
  if(TARGET sweep_${room} AND SWEEP_ROOM_TARGET MATCHES "joined")  # a target of another folder, which knows no commands of this one
    add_custom_target(${function} DEPENDS ${embedded})
    add_dependencies(${SWEEP_ROOM_TARGET} ${function})
    target_sources(${SWEEP_ROOM_TARGET} PRIVATE ${embedded})
  else()
    target_sources(sweep_${room} PRIVATE ${embedded})
  endif()
endfunction()
