// SPDX-License-Identifier: Apache-2.0

package errkind

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
)

func TestLine(t *testing.T) {
	t.Parallel()
	two := errors.Join(New(Refused, "n1 is no node"), errors.New("n2 is none either"))
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""}, {io.EOF, "EOF"}, {two, "n1 is no node; n2 is none either"}, {fmt.Errorf("plan: %w", two), "plan: n1 is no node; n2 is none either"},
		{errors.New("apt-get: \n  E: no such package;\n\tE: broken\n"), "apt-get:; E: no such package; E: broken"},
	} {
		if got := Line(c.err); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestNetworkErrorsHaveAKind: nobody has to classify what the operating system says of
// an address.
func TestNetworkErrorsHaveAKind(t *testing.T) {
	t.Parallel()
	for no, want := range map[syscall.Errno]Kind{syscall.ECONNREFUSED: Unreachable, syscall.EHOSTUNREACH: Unreachable, syscall.ENETUNREACH: Unreachable,
		syscall.EHOSTDOWN: Unreachable, syscall.ETIMEDOUT: Timeout, syscall.EPIPE: Internal} {
		err := fmt.Errorf("ask: %w", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", no)})
		if got := Of(err); got != want {
			t.Errorf("%v is %s, want %s", err, got, want)
		}
	}
}

// TestWordsOfKinds: the words are those that states and other programs hold; what is new
// is read back as itself, and treated as what it was divided from.
func TestWordsOfKinds(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]struct{ kind, base Kind }{
		"internal": {Internal, Internal}, "unreachable": {Unreachable, Unreachable}, "auth": {Auth, Auth}, "timeout": {Timeout, Timeout},
		"refused": {Refused, Refused}, "unsupported": {Unsupported, Unsupported}, "mismatch": {Mismatch, Mismatch}, "interrupted": {Interrupted, Interrupted},
		"not-found": {NotFound, Mismatch}, "invalid": {Invalid, Mismatch}, "corrupt": {Corrupt, Mismatch}, "conflict": {Conflict, Mismatch},
	} {
		var got struct{ Kind Kind }
		if err := json.Unmarshal([]byte(`{"kind": "`+word+`"}`), &got); err != nil || got.Kind != want.kind || got.Kind.Base() != want.base {
			t.Errorf("%s is read as %s of base %s (%v), want base %s", word, got.Kind, got.Kind.Base(), err, want.base)
		}
		if b, err := json.Marshal(want.kind); err != nil || string(b) != `"`+word+`"` {
			t.Errorf("%s is written as %s (%v)", word, b, err)
		}
	}
	if k := Kind(len(names)); k.String() != fmt.Sprintf("kind(%d)", len(names)) || k.UnmarshalText([]byte("mis-match")) == nil {
		t.Error("a kind or a word that is not known passes")
	}
}
