// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore ST1005 these are the words of the programs that are simulated

package system

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
)

// How long apt takes. Belief: installing over a local mirror took the lab's nodes
// 30 to 90 s for some dozen packages, under emulation.
const (
	aptStart    = 800 * time.Millisecond // reading lists and state
	perPackage  = 350 * time.Millisecond // unpack and configure one
	aptRound    = 1 * time.Second        // first pause between tries, doubled each time
	aptFailure  = 100                    // apt-get's exit status for every failure
	aptHTTPWait = 30 * time.Second       // Acquire::http::Timeout
	listsDir    = "var/lib/apt/lists"
	maxRelease  = 1 << 20
)

// aptRun is one run of apt-get.
type aptRun struct {
	call
	options map[string]string
	flags   map[string]bool // such as --allow-downgrades
	words   []string
	http    *http.Client
	retries int
}

// aptGet is apt-get update and apt-get install, for flat repositories over HTTP.
func aptGet(ctx context.Context, c call) int {
	a := aptRun{call: c, options: map[string]string{}, flags: map[string]bool{}, retries: 3}
	for i := 1; i < len(c.Argv); i++ {
		switch w := c.Argv[i]; {
		case w == "-o" && i+1 < len(c.Argv):
			i++
			key, value, _ := strings.Cut(c.Argv[i], "=")
			a.options[key] = value
		case strings.HasPrefix(w, "-"):
			a.flags[w] = true
		default:
			a.words = append(a.words, w)
		}
	}
	if !c.n.dpkg.lock() {
		_, _ = io.WriteString(c.Err, "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 812 (apt-get)\n"+
			"E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?\n")
		return aptFailure
	}
	defer c.n.dpkg.unlock()
	transport := &http.Transport{Proxy: nil, DialContext: c.n.cfg.Net.Dial, ResponseHeaderTimeout: aptHTTPWait, DisableCompression: true, MaxIdleConns: 1}
	defer transport.CloseIdleConnections()
	a.http = &http.Client{Transport: transport}
	if c.n.cfg.Clock.Sleep(ctx, aptStart) != nil {
		return 137
	}
	verb := ""
	if len(a.words) > 0 {
		verb = a.words[0]
	}
	switch verb {
	case "update":
		return a.update(ctx)
	case "install":
		return a.install(ctx, a.words[1:])
	case "clean", "autoclean", "autoremove":
		return 0
	}
	return a.fail("Invalid operation " + verb)
}

func (a aptRun) fail(lines ...string) int {
	for _, l := range lines {
		_, _ = io.WriteString(a.Err, "E: "+l+"\n")
	}
	return aptFailure
}

// source is one line of a sources.list.
type source struct{ uri, suite string }

// sources reads the file that Dir::Etc::sourcelist names, or the default one.
func (a aptRun) sources() ([]source, []string) {
	file := a.options["Dir::Etc::sourcelist"]
	if file == "" {
		file = "/etc/apt/sources.list"
	}
	b, err := a.n.tree.ReadFile(relativeName(file))
	if err != nil {
		return nil, nil // apt works without a source
	}
	var list []source
	for i, line := range strings.Split(string(b), "\n") {
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if f[0] != "deb" {
			return nil, []string{fmt.Sprintf("Type '%s' is not known on line %d in source list %s", f[0], i+1, file), "The list of sources could not be read."}
		}
		for f = f[1:]; len(f) > 0 && strings.HasPrefix(f[0], "["); f = f[1:] {
			if key, ok := strings.CutPrefix(strings.Trim(f[0], "[]"), "signed-by="); ok && !a.n.tree.exists(relativeName(key)) {
				return nil, []string{fmt.Sprintf("The key(s) in the keyring %s are ignored as the file is not readable by user '_apt' executing apt-key.", key)}
			}
		}
		if len(f) < 2 {
			return nil, []string{fmt.Sprintf("Malformed entry %d in list file %s (Suite)", i+1, file), "The list of sources could not be read."}
		}
		list = append(list, source{uri: strings.TrimSuffix(f[0], "/") + "/", suite: f[1]})
	}
	return list, nil
}

// url is where a file of a flat repository is.
func (s source) url(file string) string { return s.uri + s.suite + file }

// mark is the file that remembers which index of a source was read, in the place
// of apt's copy of it.
func (s source) mark() string {
	host := strings.TrimPrefix(strings.TrimPrefix(s.uri, "http://"), "https://")
	return listsDir + "/" + strings.NewReplacer("/", "_", ":", "%3a").Replace(host) + "." + "_Packages"
}

func (a aptRun) update(ctx context.Context) int {
	sources, bad := a.sources()
	if bad != nil {
		return a.fail(bad...)
	}
	failed := false
	for _, s := range sources {
		if err := a.refresh(ctx, s); err != nil {
			if ctx.Err() != nil {
				return 137
			}
			a.fail(err.Error())
			failed = failed || !errors.Is(err, errNoRelease)
			if errors.Is(err, errNoRelease) {
				return aptFailure
			}
		}
	}
	if failed {
		return a.fail("Some index files failed to download. They have been ignored, or old ones used instead.")
	}
	return 0
}

// errNoRelease is a repository without a signed list.
var errNoRelease = errors.New("no Release file")

// wrapped gives a text of apt's own to an error.
type wrapped struct {
	text string
	err  error
}

func (w wrapped) Error() string { return w.text }
func (w wrapped) Unwrap() error { return w.err }

// refresh reads the lists of one source.
func (a aptRun) refresh(ctx context.Context, s source) error {
	b, err := a.fetch(ctx, http.MethodGet, s.url("InRelease"), maxRelease)
	if gone, ok := errors.AsType[httpStatus](err); ok && gone == http.StatusNotFound {
		return wrapped{fmt.Sprintf("The repository '%s %s Release' does not have a Release file.", s.uri, s.suite), errNoRelease}
	}
	if err != nil {
		return fmt.Errorf("Failed to fetch %s  %w", s.url("InRelease"), err)
	}
	r, err := parseRelease(b)
	if err != nil {
		return fmt.Errorf("Failed to fetch %s  %w", s.url("InRelease"), err)
	}
	name := "Packages.gz"
	if _, ok := r.files[name]; !ok {
		name = "Packages"
	}
	want, ok := r.files[name]
	if !ok {
		return fmt.Errorf("Unable to find expected entry 'Packages' in Release file (Wrong sources.list entry or malformed file)")
	}
	if b, err = a.fetch(ctx, http.MethodGet, s.url(name), want.size); err == nil {
		_, err = a.n.cfg.Site.lists.read(name, b, want)
	}
	if err != nil {
		return fmt.Errorf("Failed to fetch %s  %w", s.url(name), err)
	}
	if err := a.n.tree.MkdirAll(listsDir, 0o755); err != nil {
		return err
	}
	return a.n.tree.write(s.mark(), []byte(want.sum), 0o644)
}

// httpStatus is an answer other than 200.
type httpStatus int

// Error writes it as apt does, with its two blanks.
func (s httpStatus) Error() string { return fmt.Sprintf("%d  %s", int(s), http.StatusText(int(s))) }

// fetch gets a file, trying again what may be better the next time.
func (a aptRun) fetch(ctx context.Context, method, from string, most int64) ([]byte, error) {
	pause := aptRound
	for try := 0; ; try++ {
		b, err := a.once(ctx, method, from, most)
		status, answered := errors.AsType[httpStatus](err)
		if err == nil || ctx.Err() != nil || try == a.retries || answered && status < 500 {
			return b, aptWords(from, err)
		}
		if err := a.n.cfg.Clock.Sleep(ctx, pause); err != nil {
			return nil, err
		}
		pause *= 2
	}
}

func (a aptRun) once(ctx context.Context, method, from string, most int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, from, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "Debian APT-HTTP/1.3 (2.6.1)")
	resp, err := a.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
		return nil, httpStatus(resp.StatusCode)
	}
	return io.ReadAll(io.LimitReader(resp.Body, most+1))
}

// aptWords puts an error of the network into apt's words.
func aptWords(from string, err error) error {
	if err == nil {
		return nil
	}
	at := ""
	if u, uerr := url.Parse(from); uerr == nil {
		at = u.Host
		if u.Port() == "" {
			at += ":80"
		}
	}
	host, port, _ := net.SplitHostPort(at)
	if status, ok := errors.AsType[httpStatus](err); ok {
		return fmt.Errorf("%w [IP: %s %s]", status, host, port)
	}
	if no, ok := errors.AsType[syscall.Errno](err); ok {
		return fmt.Errorf("Could not connect to %s (%s). - connect (%d: %s)", at, host, int(no), capitalize(no.Error()))
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("Connection failed [IP: %s %s]", host, port)
	case errors.Is(err, os.ErrDeadlineExceeded), strings.Contains(err.Error(), "timeout"):
		return fmt.Errorf("Connection timed out [IP: %s %s]", host, port)
	}
	return fmt.Errorf("Could not connect to %s (%s). - %w", at, host, err)
}

func capitalize(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
