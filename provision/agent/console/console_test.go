// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"testing"
)

func TestConsole(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	log := New(&b, false).With("node", "n1")
	log.Debug("not shown")
	log.Info("disk\x1b[2J found", "serial", "a\x1b]0;x\a", "size", 7, "empty", "")
	log.Error("no controller", "err", "connection refused", "hint", "Look at the cable.")
	want := "ironrail: disk.[2J found node=n1 serial=\"a\\x1b]0;x\\a\" size=7\r\n" +
		"ironrail: error: no controller node=n1 err=\"connection refused\"\r\nironrail:   next: Look at the cable.\r\n"
	if b.String() != want {
		t.Errorf("got %q\nwant %q", b.String(), want)
	}
}
