// SPDX-License-Identifier: Apache-2.0

package tool

import "bytes"

// LongestLine is how many bytes of a line Lines hands on when it is told nothing
// else.
const LongestLine = 64 << 10

// Lines is a writer that hands on whole lines, so that an output of any length is
// read in the memory of one line. Its zero value needs Each. It is not safe for
// concurrent use.
type Lines struct {
	Each func(line string) // without the line break
	Most int               // bytes of a line; 0: LongestLine
	// Cut is how many lines were longer: of these the beginning was handed on.
	Cut int

	buf  []byte
	lost bool // of the line that comes
}

// Write implements io.Writer and never fails.
func (l *Lines) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		l.add(line)
		if whole {
			l.end()
		}
		p = rest
	}
	return n, nil
}

// Close hands on a last line without a line break.
func (l *Lines) Close() error {
	if len(l.buf) > 0 {
		l.end()
	}
	return nil
}

func (l *Lines) add(p []byte) {
	most := l.Most
	if most == 0 {
		most = LongestLine
	}
	room := min(len(p), most-len(l.buf))
	l.buf = append(l.buf, p[:room]...)
	l.lost = l.lost || room < len(p)
}

func (l *Lines) end() {
	if l.lost {
		l.Cut++
	}
	line := string(l.buf)
	l.buf, l.lost = l.buf[:0], false
	l.Each(line)
}
