package debian

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ironrail/ironrail/provision/errkind"
)

// tools are what a build runs, and files it reads, with the package that has them.
var tools = []struct{ name, pkg string }{
	{"mmdebstrap", "mmdebstrap"},
	{"mke2fs", "e2fsprogs"},
	{"mkfs.vfat", "dosfstools"},
	{"mcopy", "mtools"},
	{"grub-mkimage", "grub-common"},
	{grubBIOS + "/boot.img", "grub-pc-bin"},
	{grubEFI + "/kernel.img", "grub-efi-amd64-bin"},
}

// grace is how long a tool may take to clean up after it was told to stop.
const grace = 30 * time.Second

// lastLines is how much of a tool's talk an error carries.
const lastLines = 12

// checkTools reports everything that is missing at once.
func (b *builder) checkTools(context.Context) error {
	var missing []string
	for _, t := range tools {
		var err error
		if strings.HasPrefix(t.name, "/") {
			_, err = os.Stat(t.name)
		} else {
			_, err = exec.LookPath(t.name)
		}
		if err != nil {
			missing = append(missing, t.pkg)
		}
	}
	if len(missing) > 0 {
		return errkind.New(errkind.Unsupported, "this controller lacks what builds an image: %s", strings.Join(missing, ", ")).
			Do("Install it: apt-get install " + strings.Join(missing, " "))
	}
	if os.Geteuid() != 0 {
		return errkind.New(errkind.Refused, "an image is built as root: its files belong to many users").Do("Run the build as root.")
	}
	return nil
}

// run runs a tool to its end. Its lines go to each, when given; an error carries
// the last of them. When ctx ends, the tool and its children are told to stop and
// have half a minute to clean up.
func (b *builder) run(ctx context.Context, each func(line string), argv ...string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = b.dir
	cmd.Env = append(cmd.Environ(), "LC_ALL=C.UTF-8", "TZ=UTC", "SOURCE_DATE_EPOCH="+epoch,
		"E2FSPROGS_FAKE_TIME="+epoch, "MKE2FS_CONFIG="+b.path(mke2fsConf), "MTOOLS_SKIP_CHECK=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace
	talk := &talk{each: each}
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	var wait sync.WaitGroup
	wait.Go(func() { talk.read(r) })
	err := cmd.Run()
	w.Close()
	wait.Wait()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return errkind.New(errkind.Of(ctx.Err()), "%s: %w", argv[0], context.Cause(ctx))
	case errors.Is(err, exec.ErrNotFound):
		return errkind.New(errkind.Unsupported, "%w", err)
	}
	return fmt.Errorf("%s: %w:\n%s", argv[0], err, strings.Join(talk.last, "\n"))
}

// talk is what a tool says.
type talk struct {
	each func(string)
	last []string
}

// read takes lines until the tool is done. A line that is too long for a scanner
// must not stop the tool, so what is left is thrown away.
func (t *talk) read(r io.Reader) {
	s := bufio.NewScanner(r)
	for s.Scan() {
		line := strings.TrimSpace(s.Text())
		if line == "" {
			continue
		}
		t.last = append(t.last, line)
		t.last = t.last[max(0, len(t.last)-lastLines):]
		if t.each != nil {
			t.each(line)
		}
	}
	_, _ = io.Copy(io.Discard, r)
}
