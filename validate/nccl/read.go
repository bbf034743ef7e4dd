// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"io"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/nccllog"
	"github.com/ironrail/ironrail/tool/nccltests"
)

// Reader reads what a test prints while it is printed. Of a run of thousands of
// ranks that is hundreds of megabytes, most of them the log of the library; what is
// kept of it grows with the ranks. It is used once.
type Reader struct {
	stdout, stderr tool.Lines
	table, errors  *nccltests.Stream
	log            *nccllog.Stream
	bytes          int64 // of standard output
}

// NewReader returns a Reader that has read nothing.
func NewReader() *Reader {
	r := &Reader{table: nccltests.NewStream(), errors: nccltests.NewStream(), log: nccllog.NewStream()}
	r.stdout.Each = func(line string) { r.table.Line(line); r.log.Line(line) }
	r.stderr.Each = r.errors.Line
	return r
}

// Stdout and Stderr take the streams of the test. Both may be written to at a time.
func (r *Reader) Stdout() io.Writer { return counted{r} }
func (r *Reader) Stderr() io.Writer { return &r.stderr }

// counted is the standard output of a Reader.
type counted struct{ r *Reader }

func (c counted) Write(p []byte) (int, error) {
	c.r.bytes += int64(len(p))
	return c.r.stdout.Write(p)
}

// whole returns an error around onnode.ErrCut when the output has more than a Reader can
// keep of it.
func (t Test) whole(r *Reader) error {
	lost := r.table.Lost()
	if lost == "" {
		lost = r.log.Lost()
	}
	if lost == "" && r.stdout.Cut > 0 {
		lost = "a line of more than 64 KiB"
	}
	if lost == "" {
		return nil
	}
	return errkind.New(errkind.Unsupported, "output of "+ProgramOf(t.Does)+": %w: it has %s within its %d bytes", onnode.ErrCut, lost, r.bytes).
		Do("Read the attached output and find what prints so much: NCCL_DEBUG in /etc/nccl.conf of the nodes, or another program.")
}

// Judge holds what was read against the test. An error around onnode.ErrCut is about
// the output and speaks against no node.
func (t Test) Judge(r *Reader) (Measured, error) {
	_ = r.stdout.Close()
	if err := t.whole(r); err != nil {
		return Measured{}, err
	}
	content, problems, err := r.table.End()
	if err != nil {
		return Measured{}, t.refuse("%v", err)
	}
	if len(content.More) > 0 {
		return Measured{}, t.refuse("there are %d tests in it", len(content.Tests()))
	}
	if err := t.ranks(content.Test); err != nil {
		return Measured{}, err
	}
	m := Measured{Library: content.Library}
	if log, _, err := r.log.End(); err == nil { // else a library that writes no log
		if m.Algorithm, err = t.algorithm(log); err != nil {
			return Measured{}, err
		}
		m.Indirect, m.Outside = t.indirect(log), t.outside(log)
	}
	return t.measured(m, content, problems)
}

// measured takes the row of the size that was asked for.
func (t Test) measured(m Measured, content nccltests.Content, problems tool.Problems) (Measured, error) {
	row, ok := content.Largest()
	switch {
	case !ok:
		return Measured{}, t.refuse("there is no row of results")
	case row.Size != t.Size:
		return Measured{}, t.refuse("%d bytes were asked for, and the largest size that was tested is %d: memory has no room for more", t.Size, row.Size).
			Do("Give the test a smaller size.")
	}
	for _, p := range []*nccltests.Placement{row.OutOfPlace, row.InPlace} {
		if p == nil || p.BusBW == nil || p.Wrong == nil {
			return Measured{}, t.refuse("the results of size %d are not whole, or were not checked", t.Size)
		}
		m.Wrong += *p.Wrong
		if bw := *p.BusBW * 1e9; m.BusBW == 0 || bw < m.BusBW {
			m.BusBW = bw
		}
	}
	if m.Wrong > 0 {
		return m, nil
	}
	for _, p := range problems {
		// Warnings of the library that did not stop it are kept as evidence.
		if p.Kind != tool.Failed || !strings.HasPrefix(p.Text, "NCCL warns") {
			return Measured{}, t.refuse("%s", p.Text)
		}
	}
	return m, nil
}

// Why is what a run that failed says first of what went wrong; empty when it says
// nothing. It is called instead of Judge.
func (r *Reader) Why() string {
	_, _ = r.stdout.Close(), r.stderr.Close()
	for _, s := range []*nccltests.Stream{r.table, r.errors} {
		_, problems, err := s.End()
		i := slices.IndexFunc(problems, func(p tool.Problem) bool { return p.Kind == tool.Failed })
		if err != nil || i < 0 {
			continue
		}
		text := problems[i].Text
		if meaning, _ := nccllog.ExplainWarning(text); meaning != "" {
			text += ": " + meaning
		}
		return text
	}
	return ""
}
