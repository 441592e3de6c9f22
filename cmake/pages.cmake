# Completions and man pages, which the programs print of themselves when they are built. A build for another processor cannot run
# them: its installation has none.
if(CMAKE_CROSSCOMPILING)
  return()
endif()
set(pages ${PROJECT_BINARY_DIR}/pages)
set(asked ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0)  # of a program that is over, leaks are no news
set(made "")
# lockstep_program_pages(TARGET NAME): NAME's three completions and its man page.
function(lockstep_program_pages target name)
  set(files ${pages}/bash/${name} ${pages}/zsh/_${name} ${pages}/fish/${name}.fish ${pages}/man/${name}.1)
  add_custom_command(OUTPUT ${files} DEPENDS ${target} VERBATIM
    COMMAND ${CMAKE_COMMAND} -E make_directory ${pages}/bash ${pages}/zsh ${pages}/fish ${pages}/man
    COMMAND ${asked} $<TARGET_FILE:${target}> --completion bash > ${pages}/bash/${name}
    COMMAND ${asked} $<TARGET_FILE:${target}> --completion zsh > ${pages}/zsh/_${name}
    COMMAND ${asked} $<TARGET_FILE:${target}> --completion fish > ${pages}/fish/${name}.fish
    COMMAND ${asked} $<TARGET_FILE:${target}> --man > ${pages}/man/${name}.1)
  list(APPEND made ${files})
  set(made ${made} PARENT_SCOPE)
endfunction()
lockstep_program_pages(lockstep_data_tool lockstep-data)
foreach(name ${LOCKSTEP_INSTALLED_PROGRAMS})
  lockstep_program_pages(${name} ${name})
endforeach()
# `lockstep` has a man page for each of its commands.
set(files ${pages}/bash/lockstep ${pages}/zsh/_lockstep ${pages}/fish/lockstep.fish ${pages}/man/lockstep.1)
add_custom_command(OUTPUT ${files} DEPENDS lockstep_tool VERBATIM
  COMMAND ${CMAKE_COMMAND} -E make_directory ${pages}/bash ${pages}/zsh ${pages}/fish ${pages}/man
  COMMAND ${asked} $<TARGET_FILE:lockstep_tool> completion bash > ${pages}/bash/lockstep
  COMMAND ${asked} $<TARGET_FILE:lockstep_tool> completion zsh > ${pages}/zsh/_lockstep
  COMMAND ${asked} $<TARGET_FILE:lockstep_tool> completion fish > ${pages}/fish/lockstep.fish
  COMMAND ${asked} $<TARGET_FILE:lockstep_tool> man --output ${pages}/man)
add_custom_target(lockstep_pages ALL DEPENDS ${made} ${files})
install(DIRECTORY ${pages}/bash/ DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(DIRECTORY ${pages}/zsh/ DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(DIRECTORY ${pages}/fish/ DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(DIRECTORY ${pages}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
