package cli

import (
	"context"
	"embed"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"kith/storage"
)

// CompletionCmd is `kith completion SHELL`.
type CompletionCmd struct {
	Bash completionScript `cmd:"" help:"For bash: add source <(kith completion bash) to ~/.bashrc."`
	Zsh  completionScript `cmd:"" help:"For zsh: add source <(kith completion zsh) to ~/.zshrc, after compinit."`
	Fish completionScript `cmd:"" help:"For fish: add kith completion fish | source to ~/.config/fish/config.fish."`
}

// completionScripts have the shell ask this program what a word may become.
//
//go:embed completion
var completionScripts embed.FS

type completionScript struct{}

// BeforeReset prints the script and ends the program before any setting is read.
func (completionScript) BeforeReset(app *kong.Kong, given *kong.Context) error {
	script, err := completionScripts.ReadFile("completion/kith." + given.Selected().Name)
	return showInstead(app, given, string(script), err)
}

// showInstead prints a text and ends the program. Called before the environment is read, it works whatever the settings are.
func showInstead(app *kong.Kong, given *kong.Context, text string, err error) error {
	if slices.ContainsFunc(given.Path, func(p *kong.Path) bool { return p.Flag != nil && strings.HasPrefix(p.Flag.Name, "help") }) {
		return nil // help comes next
	}
	if err == nil {
		_, err = io.WriteString(app.Stdout, text)
	}
	if err == nil {
		app.Exit(0)
	}
	return err
}

// completeCommand is what the scripts call, with the name of the shell and the words up to the cursor,
// except the first. It is not one of the program's commands, so that help does not show it and no
// setting is read.
const completeCommand = "__complete"

// A candidate is what the word at the cursor may become.
type candidate struct{ word, help string }

// complete answers a script: a line for each candidate, with its help behind a tab. Bash does not use help. If there
// is no line, the shell offers files. Mistakes are not reported, because Enter has not been pressed yet.
func complete(ctx context.Context, root *kong.Node, args []string, out io.Writer) {
	if len(args) < 2 {
		return
	}
	shell, words := args[0], args[1:]
	if bench := child(root, words[0]); bench != nil && bench.Passthrough && len(words) > 1 {
		if program, err := benchProgram(); err == nil {
			command := exec.CommandContext(ctx, program, append([]string{completeCommand}, args...)...) //nolint:gosec // the program beside this one, with the words that its user types
			command.Stdout = out
			_ = command.Run() // that program may not have been built
		}
		return
	}
	if shell != "bash" {
		for _, c := range candidates(root, words) {
			fmt.Fprintf(out, "%s\t%s\n", c.word, c.help)
		}
		return
	}
	for _, c := range candidates(root, joined(words)) {
		if _, value, ok := strings.Cut(c.word, "="); ok {
			c.word = value // bash replaces what is behind the =
		}
		fmt.Fprintln(out, c.word)
	}
}

// joined joins words that bash has split at = and :, which bash passes on as words of their own.
func joined(words []string) (whole []string) {
	open := false
	for _, w := range words {
		separator := w == "=" || w == ":"
		if (separator || open) && len(whole) > 0 {
			whole[len(whole)-1] += w
		} else {
			whole = append(whole, w)
		}
		open = separator
	}
	return whole
}

// candidates are what the last of the words may become.
func candidates(node *kong.Node, words []string) []candidate {
	before, word := words[:len(words)-1], words[len(words)-1]
	var open *kong.Flag // whose value comes next
	for _, w := range before {
		switch {
		case open != nil:
			open = nil
		case strings.HasPrefix(w, "-"):
			if f := flag(node, w); f != nil && !f.IsBool() {
				open = f
			}
		default:
			if c := child(node, w); c != nil {
				node = c
			}
		}
	}
	name, _, assigned := strings.Cut(word, "=")
	var list []candidate
	switch {
	case open != nil:
		list = values(open, "")
	case assigned:
		if f := flag(node, name); f != nil {
			list = values(f, name+"=")
		}
	case strings.HasPrefix(word, "-"):
		list = flagNames(node)
	default:
		for _, c := range node.Children {
			if !c.Hidden {
				list = append(list, candidate{c.Name, firstSentence(c.Help)})
			}
		}
	}
	return slices.DeleteFunc(list, func(c candidate) bool { return !strings.HasPrefix(c.word, word) })
}

func child(node *kong.Node, name string) *kong.Node {
	i := slices.IndexFunc(node.Children, func(c *kong.Node) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return node.Children[i]
}

// flags are all flags that may follow the command of a node: its own, those of the commands above it,
// and those of the default command.
func flags(node *kong.Node) []*kong.Flag {
	list := slices.Concat(node.AllFlags(true)...)
	if node.DefaultCmd != nil && node.DefaultCmd.Tag.Default == "withargs" {
		list = append(list, node.DefaultCmd.Flags...)
	}
	return list
}

func flag(node *kong.Node, name string) *kong.Flag {
	for _, f := range flags(node) {
		if name == "--"+f.Name || f.Short != 0 && name == "-"+string(f.Short) {
			return f
		}
	}
	return nil
}

func flagNames(node *kong.Node) (list []candidate) {
	for _, f := range flags(node) {
		list = append(list, candidate{"--" + f.Name, firstSentence(f.Help)})
		if f.Tag.Negatable != "" {
			list = append(list, candidate{"--no-" + f.Name, "Not: " + firstSentence(f.Help)})
		}
	}
	return list
}

// values are those of a flag that has only certain ones.
func values(f *kong.Flag, prefix string) (list []candidate) {
	if f.Enum == "" {
		return nil
	}
	return storage.Each(f.EnumSlice(), func(v string) candidate { return candidate{prefix + v, ""} })
}

func firstSentence(help string) string {
	sentence, _, _ := strings.Cut(help, ". ")
	return strings.TrimSuffix(sentence, ".")
}
