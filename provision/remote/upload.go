// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

// The three commands of an upload. $1 is the temporary file, $2 the file, $3 the
// mode. "set -C" refuses to write through a file or link that is already there.
const (
	uploadWrite  = `set -eC; umask 077; cat >"$1"; sync "$1"; sha256sum <"$1"`
	uploadRename = `set -e; chmod "$3" "$1"; mv -fT "$1" "$2"; sync "$(dirname "$2")"`
	uploadRemove = `rm -f "$1"`
)

// Upload writes what r gives to a file on the node, whole or not at all: into a
// temporary file beside it, compared by its digest, flushed to the disk, renamed,
// and the folder flushed. The folder must exist. On an error the old file, if
// any, is as it was; a temporary file .ironrail-* may be left only when the node
// could not be reached any more. The node needs a POSIX shell and GNU coreutils.
//
// The rename is a command of its own: when the connection breaks, the first
// command sees an end of its input like any other and must not take it for the
// end of the file.
func (c *Client) Upload(ctx context.Context, file string, mode fs.FileMode, r io.Reader) error {
	err := c.upload(ctx, file, mode, r)
	return c.cfg.wrap("upload "+file, err)
}

func (c *Client) upload(ctx context.Context, file string, mode fs.FileMode, r io.Reader) (err error) {
	if !path.IsAbs(file) || path.Clean(file) != file || mode&^fs.ModePerm != 0 {
		return errkind.New(errkind.Internal, "path %q or mode %v is not plain", file, mode)
	}
	random := make([]byte, 8)
	_, _ = rand.Read(random) // never fails
	temp := path.Join(path.Dir(file), ".ironrail-"+hex.EncodeToString(random))
	sum := sha256.New()
	defer func() {
		if err != nil {
			c.removeTemp(ctx, temp)
		}
	}()
	out, err := c.shell(ctx, io.TeeReader(r, sum), uploadWrite, temp)
	if err != nil {
		return err
	}
	want := hex.EncodeToString(sum.Sum(nil))
	if got, _, _ := strings.Cut(out, " "); got != want {
		return errkind.New(errkind.Corrupt, "the node has digest %.64q of what was sent as %s", got, want)
	}
	_, err = c.shell(ctx, nil, uploadRename, temp, file, fmt.Sprintf("%04o", mode))
	return err
}

// cleanupTime bounds the removal of a temporary file; a busy disk takes its time.
const cleanupTime = 30 * time.Second

// removeTemp cleans up after a failed upload, also when ctx has ended.
func (c *Client) removeTemp(ctx context.Context, temp string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	_, _ = c.shell(ctx, nil, uploadRemove, temp)
}

// shell runs a script with arguments and returns its stdout; any status but 0 is
// an error.
func (c *Client) shell(ctx context.Context, stdin io.Reader, script string, args ...string) (string, error) {
	r, err := c.Run(ctx, Command{Argv: append([]string{"/bin/sh", "-c", script, "sh"}, args...), Stdin: stdin, MaxOutput: 4096})
	if err != nil {
		return "", err
	}
	if r.Exit != 0 {
		return "", errkind.New(errkind.Refused, "status %d: %s", r.Exit, strings.TrimSpace(string(r.Stderr)))
	}
	return string(r.Stdout), nil
}
