# Completion of kith for fish. For every shell to come, put this into ~/.config/fish/config.fish:
#   kith completion fish | source
function __kith_complete
    set -l words (commandline -opc)
    set -l found ($words[1] __complete fish $words[2..] (commandline -ct) 2>/dev/null)
    if set -q found[1]
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c kith -f -a '(__kith_complete)'
