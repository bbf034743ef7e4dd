// SPDX-License-Identifier: Apache-2.0

// Package manual writes the pages that man(1) shows from the tree of commands. The help of
// a command is prose and tables as they are to be read on a terminal: prose is filled to
// the reader's width, and what is indented stays as it is.
package manual

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Source is what all pages say of themselves.
type Source struct {
	Version string    // of the program
	At      time.Time // zero: not known, and none is printed
}

// Commands returns a command and all below it that help lists, in order.
func Commands(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			all = append(all, Commands(sub)...)
		}
	}
	return all
}

// Name is the name of a command's page: ironrail-report-sign for `ironrail report sign`.
func Name(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// Page returns the page of a command in the man macros (groff_man(7)), section 1.
func Page(c *cobra.Command, from Source) []byte {
	var b bytes.Buffer
	date := ""
	if !from.At.IsZero() {
		date = from.At.UTC().Format(time.DateOnly)
	}
	fmt.Fprintf(&b, ".TH %s 1 %s %s %s\n", quote(strings.ToUpper(Name(c))), quote(date), quote(c.Root().Name()+" "+from.Version), quote(c.Root().Name()))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", escape(Name(c)), escape(c.Short))
	b.WriteString(".SH SYNOPSIS\n")
	fmt.Fprintf(&b, ".B %s\n", escape(c.UseLine()))
	b.WriteString(".SH DESCRIPTION\n")
	prose(&b, cmp.Or(c.Long, c.Short))
	commands(&b, c)
	flags(&b, "OPTIONS", c.NonInheritedFlags())
	flags(&b, "OPTIONS OF ALL COMMANDS", c.InheritedFlags())
	if c.Example != "" {
		b.WriteString(".SH EXAMPLES\n")
		literal(&b, c.Example)
	}
	if related := related(c); len(related) > 0 {
		fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", strings.Join(related, "\n"))
	}
	return b.Bytes()
}

// commands lists what is below a command.
func commands(b *bytes.Buffer, c *cobra.Command) {
	first := true
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		if first {
			b.WriteString(".SH COMMANDS\n")
			first = false
		}
		fmt.Fprintf(b, ".TP\n.BR %s (1)\n%s\n", escape(Name(sub)), escape(sub.Short))
	}
}

// related are the pages of the command above and of those below.
func related(c *cobra.Command) (all []string) {
	add := func(c *cobra.Command) { all = append(all, fmt.Sprintf(".BR %s (1)", escape(Name(c)))) }
	if c.HasParent() {
		add(c.Parent())
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			add(sub)
		}
	}
	for i := range all[:max(0, len(all)-1)] {
		all[i] += " ,"
	}
	return all
}

// flags writes a section of flags, when there are any that help lists.
func flags(b *bytes.Buffer, title string, set *pflag.FlagSet) {
	first := true
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		if first {
			fmt.Fprintf(b, ".SH %s\n", title)
			first = false
		}
		name, usage := pflag.UnquoteUsage(f)
		head := "--" + f.Name
		if f.Shorthand != "" {
			head = "-" + f.Shorthand + ", " + head
		}
		if name != "" {
			head += " " + name
		}
		if d := f.DefValue; d != "" && d != "false" && d != "0" && d != "0s" && d != "[]" {
			usage += " (default " + d + ")"
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", escape(head), escape(usage))
	})
}

// prose writes paragraphs: those with an indented line as they are, others filled.
func prose(b *bytes.Buffer, text string) {
	for i, p := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		lines := strings.Split(p, "\n")
		if slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, " ") }) {
			literal(b, p)
			continue
		}
		if i > 0 {
			b.WriteString(".PP\n")
		}
		for _, l := range lines {
			b.WriteString(escape(l) + "\n")
		}
	}
}

// literal writes lines as they are.
func literal(b *bytes.Buffer, text string) {
	b.WriteString(".PP\n.nf\n")
	for l := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		b.WriteString(escape(l) + "\n")
	}
	b.WriteString(".fi\n")
}

// special are the characters that roff reads as something else than what is typed on a
// terminal (groff_char(7)).
var special = strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", `\(ga`, "'", `\(aq`, "^", `\(ha`, "~", `\(ti`)

// escape makes a line of text of anything; a line that is a request else is none.
func escape(text string) string {
	text = special.Replace(strings.ReplaceAll(text, "\n", " "))
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}

// quote makes one argument of a request.
func quote(text string) string { return `"` + strings.ReplaceAll(escape(text), `"`, `\(dq`) + `"` }
