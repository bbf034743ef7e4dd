// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ironrail/ironrail/tool"
)

func TestLines(t *testing.T) {
	t.Parallel()
	const in = "one\n\ntwo\r\n1234567890\nlast"
	want := []string{"one", "", "two\r", "12345678", "last"}
	for _, source := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in))} {
		var got []string
		l := tool.Lines{Each: func(line string) { got = append(got, line) }, Most: 8}
		if _, err := io.Copy(&l, source); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil || !slices.Equal(got, want) || l.Cut != 1 {
			t.Errorf("%v, got %q, %d cut", err, got, l.Cut)
		}
	}
}
