# Completion of swerve for bash. Commands and options are asked of the program itself.
_swerve() {
    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]}
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" help 2>/dev/null | awk '/^  / {print $1}')" -- "$word")
    elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" "$command" --help 2>/dev/null | awk '/^  --/ {print $1}')" -- "$word")
    fi
}
complete -o default -F _swerve swerve
