// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/recognise"
)

func (a *app) readCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "read FILE...",
		Short: "Show what is understood of another program's output",
		Long: `Read what other programs printed, recognise by its content which one it was, and
show what it says and what is wrong with it: figures that contradict each other,
a run that was cut off, a test that failed. "-" reads standard input. No site is
needed, and nothing but the files is looked at.

Colours, carriage returns, indentation, the marks of quotations, Markdown fences,
and the times and labels that mpirun --tag-output, srun --label, pdsh, clush,
docker and kubectl put before lines are taken off first.

With --json, one object a file, each on a line of its own: file, kind, problems
(kind, text, line) and content. Where several outputs stand in a file, the object
is of the one that is the surest; each other is among its problems, and is read
under others: lines, kind, problems and content.

Known: ` + foldWords(strings.Join(recognise.Kinds(), ", "), len("Known: ")) + `.

Exit code 1 when a file cannot be read or is not understood; the others are shown
all the same. Problems that an output has do not change the exit code.`,
		Example: "  ironrail read all_reduce.log\n  srun -l all_reduce_perf -b 8G -e 8G -g 1 | ironrail read -\n  ironrail read --json logs/*.txt | jq 'select(.problems != [])'",
		Args:    asUsage(cobra.MinimumNArgs(1)),
		RunE:    func(_ *cobra.Command, args []string) error { return a.read(args) },
	}
}

// read reads every file, and shows what was understood before it complains about
// what was not.
func (a *app) read(names []string) error {
	debug.SetGCPercent(30) // of a log that is read line by line little is kept
	var failed []error
	for _, name := range names {
		reading, err := a.readOutput(name)
		if err == nil {
			err = a.showReading(reading)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(failed...)
}

// readOutput reads one file, or standard input.
func (a *app) readOutput(name string) (recognise.Reading, error) {
	from := a.in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return recognise.Reading{}, withoutPath(err)
		}
		defer f.Close()
		from = f
	}
	r, err := recognise.ReadFrom(name, from)
	return r, withoutPath(err)
}

// withoutPath is an error of a file without its name, which stands before it.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

// showReading prints a reading: as a line of JSON, or for a person.
func (a *app) showReading(r recognise.Reading) error {
	if a.json {
		line, err := json.Marshal(r)
		if err == nil {
			_, err = a.out.Write(append(line, '\n'))
		}
		return err
	}
	var p page
	p.linef("%s: %s", r.File, r.Kind)
	showOutput(&p, r.Content, r.Problems)
	for _, o := range r.Others {
		p.linef("%s, lines %d to %d: %s", r.File, o.Lines[0], o.Lines[1], o.Kind)
		showOutput(&p, o.Content, o.Problems)
	}
	p.to(a.out)
	return nil
}

// showOutput adds what one output says and what is wrong with it.
func showOutput(p *page, content any, problems tool.Problems) {
	if s, ok := content.(tool.Summarizer); ok {
		for _, line := range s.Summary() {
			p.linef("  %s", line)
		}
	}
	for _, problem := range problems {
		if problem.Line > 0 {
			p.linef("  %s: line %d: %s", problem.Kind, problem.Line, problem.Text)
		} else {
			p.linef("  %s: %s", problem.Kind, problem.Text)
		}
	}
}

// foldWords breaks a list of words into lines of at most 79 characters; the first
// has less room.
func foldWords(text string, used int) string {
	var b strings.Builder
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case used+1+len(word) > 79:
			b.WriteByte('\n')
			used = 0
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += len(word)
	}
	return b.String()
}
