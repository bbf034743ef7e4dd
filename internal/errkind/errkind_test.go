package errkind

import (
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
