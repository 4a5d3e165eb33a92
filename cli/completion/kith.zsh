#compdef kith
# Completion of kith for zsh. For every shell to come, put this into ~/.zshrc, behind compinit:
#   source <(kith completion zsh)
_kith() {
	local -a candidates
	local line
	for line in "${(@f)$("${(Q)words[1]/#\~/$HOME}" __complete zsh "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
		[[ -n $line ]] && candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
	done
	if (( $#candidates )); then
		_describe kith candidates
	else
		_files
	fi
}
compdef _kith kith
