// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// canary is the password as the tests look for it.
var canary = []byte(password)

// watchArgv reads the command lines of all processes again and again until the
// test ends, and fails it when the password is in one.
func (l *Lab) watchArgv() {
	stop, done := make(chan struct{}), make(chan struct{})
	l.t.Cleanup(func() {
		close(stop)
		<-done
	})
	go func() {
		defer close(done)
		tick := time.NewTicker(300 * time.Millisecond)
		defer tick.Stop()
		for {
			l.lookArgv()
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
}

func (l *Lab) lookArgv() {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		if b, err := os.ReadFile(name); err == nil && bytes.Contains(b, canary) {
			l.t.Errorf("the BMC password is in %s: %.60q", name, b)
		}
	}
}

// noPassword fails the test when the password is in anything that was written:
// state, events, evidence, reports, consoles, logs. Not looked at are images,
// which are older than it, the disks, and the one file of the BMC that holds it.
func (l *Lab) noPassword() {
	files := 0
	err := filepath.WalkDir(l.dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && filepath.Dir(path) == l.State() && (d.Name() == "images" || d.Name() == "repo"):
			return filepath.SkipDir
		case !d.Type().IsRegular(), d.Name() == "lan.conf", strings.HasSuffix(d.Name(), ".raw"):
			return nil
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, canary) {
			l.t.Errorf("the BMC password is in %s", strings.TrimPrefix(path, l.dir+"/"))
		}
		files++
		return err
	})
	if err != nil || files < 5 {
		l.t.Errorf("looked for the password in %d files: %v", files, err)
	}
}

// noSecret fails the test when a command printed the password.
func (l *Lab) noSecret(what string, r Result) {
	if strings.Contains(r.Stdout+r.Stderr, password) {
		l.t.Errorf("%s printed the BMC password", what)
	}
}
