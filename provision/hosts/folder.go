// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/remote"
)

// guardScript makes a folder, puts the agent from its standard input into it, and
// removes the folder when the input ends, which is when we say so, when we die, or
// when the connection is lost; and after so many seconds at the latest. $1 is the
// size of the agent, $2 its digest, $3 the seconds. The first place where programs may
// be run is taken, memory before disks.
const guardScript = `umask 077
dir=
end() {
	trap '' HUP INT TERM PIPE
	if [ -n "$dir" ]; then rm -rf -- "$dir" && printf 'removed\n'; fi
}
trap end EXIT
trap 'exit 1' HUP INT TERM PIPE
for base in /dev/shm /tmp /var/tmp "$HOME"; do
	if [ ! -d "$base" ] || [ ! -w "$base" ]; then continue; fi
	dir=$(mktemp -d "$base/ironrail-test.XXXXXXXXXX" 2>/dev/null) || { dir=; continue; }
	printf '#!/bin/sh\nexit 0\n' >"$dir/may" && chmod 700 "$dir/may" && "$dir/may" 2>/dev/null && break
	rm -rf -- "$dir"
	dir=
done
if [ -z "$dir" ]; then echo 'no folder of /dev/shm, /tmp, /var/tmp and the home folder takes a program' >&2; exit 3; fi
rm -f -- "$dir/may"
head -c "$1" >"$dir/ironrail-agent"
sum=$(sha256sum <"$dir/ironrail-agent")
if [ "${sum%% *}" != "$2" ]; then echo 'the agent did not arrive whole' >&2; exit 4; fi
chmod 700 "$dir/ironrail-agent"
printf 'ready %s\n' "$dir"
timeout "$3" cat >/dev/null
exit 0
`

// Times of a folder.
const (
	uploadWait = 3 * time.Minute  // for the agent to be there
	removeWait = 30 * time.Second // for the folder to be gone
	folderLife = 6 * time.Hour    // at most, where the end of the connection is not noticed
)

// folder is a folder on a host that is removed in every way of ending.
type folder struct {
	path string
	hold chan struct{} // closed: the folder goes
	over chan struct{} // closed when the guard has ended
	once sync.Once

	mu      sync.Mutex // guards what follows
	printed bytes.Buffer
	result  remote.Result
	err     error
	ready   chan struct{} // closed when path is set
}

// Write takes what the guard prints.
func (f *folder) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.printed.Len() < 4096 {
		f.printed.Write(p)
	}
	if line, _, whole := strings.Cut(f.printed.String(), "\n"); whole && f.path == "" {
		if path, ok := strings.CutPrefix(line, "ready "); ok && strings.HasPrefix(path, "/") {
			f.path = path
			close(f.ready)
		}
	}
	return len(p), nil
}

// heldInput is the agent, and then nothing until the folder is to go.
type heldInput struct {
	program io.Reader
	hold    <-chan struct{}
}

func (h *heldInput) Read(p []byte) (int, error) {
	if n, err := h.program.Read(p); n > 0 || err != io.EOF {
		return n, err
	}
	<-h.hold
	return 0, io.EOF
}

// openFolder makes the folder on a host and puts the agent into it.
func openFolder(ctx context.Context, client *remote.Client, program []byte) (*folder, error) {
	f := &folder{hold: make(chan struct{}), over: make(chan struct{}), ready: make(chan struct{})}
	sum := sha256.Sum256(program)
	argv := []string{"/bin/sh", "-c", guardScript, "sh", strconv.Itoa(len(program)), hex.EncodeToString(sum[:]), strconv.Itoa(int(folderLife.Seconds()))}
	go func() { // ends with the folder, or with the connection
		defer close(f.over)
		life, cancel := context.WithTimeout(context.WithoutCancel(ctx), folderLife+time.Minute)
		defer cancel()
		r, err := client.Run(life, remote.Command{Argv: argv, Stdin: &heldInput{bytes.NewReader(program), f.hold}, Stdout: f, MaxOutput: 4096})
		f.mu.Lock()
		defer f.mu.Unlock()
		f.result, f.err = r, err
	}()
	slow := time.NewTimer(uploadWait)
	defer slow.Stop()
	select {
	case <-f.ready:
		return f, nil
	case <-f.over:
		return nil, f.failure()
	case <-ctx.Done():
		return nil, errjoin(errkind.New(errkind.Interrupted, "interrupted: %w", context.Cause(ctx)), f.remove())
	case <-slow.C:
		return nil, errjoin(errkind.New(errkind.Timeout, "the agent was not taken within %s", uploadWait), f.remove())
	}
}

// errjoin is the first error, with the second behind it.
func errjoin(err, further error) error {
	if further == nil {
		return err
	}
	return errkind.New(errkind.Of(err), "%w; %w", err, further).Do(errkind.Action(further))
}

// failure is why the guard ended early.
func (f *folder) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	return errkind.New(errkind.Refused, "no folder for ironrail's agent: exit status %d: %s", f.result.Exit, strings.TrimSpace(string(f.result.Stderr))).
		Do("Let the user write and run programs in /dev/shm, /tmp, /var/tmp or its home folder.")
}

// remove removes the folder, and says so where that is not certain. It is called once
// with a connection that may be lost.
func (f *folder) remove() error {
	f.once.Do(func() { close(f.hold) })
	slow := time.NewTimer(removeWait)
	defer slow.Stop()
	select {
	case <-f.over:
	case <-slow.C:
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.path == "" || strings.HasSuffix(strings.TrimSpace(f.printed.String()), "removed") {
		return nil
	}
	return errkind.New(errkind.Unreachable, "whether the folder %s is gone is not known: the node removes it itself when it notices that the connection is lost, after %s at the latest", f.path, folderLife).
		Do(fmt.Sprintf("Look whether %s is there.", f.path))
}
