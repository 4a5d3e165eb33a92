# Completion of kith for bash. For every shell to come, put this into ~/.bashrc:
#   source <(kith completion bash)
_kith() {
	local IFS=$'\n'
	COMPREPLY=($("${COMP_WORDS[0]/#\~/$HOME}" __complete bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _kith kith
