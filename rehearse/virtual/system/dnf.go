// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore ST1005 these are the words of the programs that are simulated

package system

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/images/repo/repodata"
	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// Places of dnf on a node, and the package of its plugin versionlock.
const (
	dnfRepos    = "etc/yum.repos.d"
	dnfCache    = "var/cache/dnf"
	versionLock = "etc/dnf/plugins/versionlock.list"
	lockPlugin  = "python3-dnf-plugin-versionlock"
)

// maxRepomd bounds an index in bytes.
const maxRepomd = 1 << 20

// dnfRun is one run of dnf. It fetches as apt does here.
type dnfRun struct {
	aptRun
	enabled string // the repository
}

// runDnf is dnf makecache and dnf install, with one repository over HTTP.
func runDnf(ctx context.Context, c call) int {
	if !c.n.cfg.Twin.OfRPM() {
		c.fail("command not found")
		return 127
	}
	d := dnfRun{aptRun: aptRun{call: c, flags: map[string]bool{}, retries: 3}}
	for _, w := range c.Argv[1:] {
		switch {
		case strings.HasPrefix(w, "--enablerepo="):
			d.enabled = strings.TrimPrefix(w, "--enablerepo=")
		case strings.HasPrefix(w, "-"):
			d.flags[w] = true
		default:
			d.words = append(d.words, w)
		}
	}
	for !c.n.dpkg.lock() { // rpm's is the same here; dnf waits for it
		if c.n.cfg.Clock.Sleep(ctx, time.Second) != nil {
			return 137
		}
	}
	defer c.n.dpkg.unlock()
	transport := &http.Transport{Proxy: nil, DialContext: c.n.cfg.Net.Dial, ResponseHeaderTimeout: aptHTTPWait, DisableCompression: true, MaxIdleConns: 1}
	defer transport.CloseIdleConnections()
	d.http = &http.Client{Transport: transport}
	if c.n.cfg.Clock.Sleep(ctx, aptStart) != nil {
		return 137
	}
	switch {
	case len(d.words) == 1 && d.words[0] == "makecache":
		if _, err := d.read(ctx); err != nil {
			return d.complain(ctx, err.Error())
		}
		return 0
	case len(d.words) > 1 && d.words[0] == "install":
		return d.install(ctx, d.words[1:])
	}
	return d.complain(ctx, "No such command: "+strings.Join(d.words, " "))
}

// complain ends dnf with an error.
func (d dnfRun) complain(ctx context.Context, text string) int {
	if ctx.Err() != nil {
		return 137
	}
	_, _ = fmt.Fprintf(d.Err, "Error: %s\n", text)
	return 1
}

// base is the URL of the repository, as its file has it.
func (d dnfRun) base() (string, error) {
	b, err := d.n.tree.ReadFile(dnfRepos + "/" + d.enabled + ".repo")
	if err != nil {
		return "", fmt.Errorf("Unknown repo: '%s'", d.enabled)
	}
	at := ""
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "baseurl":
			at = strings.TrimSuffix(value, "/") + "/"
		case "gpgkey":
			if name := strings.TrimPrefix(value, "file://"); !d.n.tree.exists(relativeName(name)) {
				return "", fmt.Errorf("Failed to retrieve GPG key for repo '%s': Curl error (37): Couldn't read a file:// file for %s", d.enabled, value)
			}
		}
	}
	return at, nil
}

// read reads the metadata of the repository. Its signature has to be there; it is not checked
// here, as it is on a real node.
func (d dnfRun) read(ctx context.Context) (index, error) {
	base, err := d.base()
	if err != nil {
		return nil, err
	}
	failed := func(err error) (index, error) {
		return nil, fmt.Errorf("Failed to download metadata for repo '%s': Cannot download repomd.xml: %w", d.enabled, err)
	}
	b, err := d.fetch(ctx, http.MethodGet, base+repodata.Index, maxRepomd)
	if err != nil {
		return failed(err)
	}
	if signed, err := d.fetch(ctx, http.MethodGet, base+repodata.Signature, maxRepomd); err != nil || !bytes.Contains(signed, []byte("BEGIN PGP SIGNATURE")) {
		return nil, fmt.Errorf("Failed to download metadata for repo '%s': repomd.xml GPG signature verification error: Bad GPG signature", d.enabled)
	}
	files, err := repodata.ParseIndex(b)
	if err != nil {
		return failed(err)
	}
	primary := *repodata.Find(files, repodata.Primary)
	if have, ok := d.n.cfg.Site.lists.of(primary.Sum); ok {
		return have, d.remember(primary.Sum)
	}
	if b, err = d.fetch(ctx, http.MethodGet, base+primary.Name, primary.Size); err != nil {
		return failed(err)
	}
	have, err := d.n.cfg.Site.lists.readPrimary(b, primary)
	if err != nil {
		return failed(err)
	}
	return have, d.remember(primary.Sum)
}

// remember says which metadata was read, in the place of dnf's copy of it.
func (d dnfRun) remember(sum string) error {
	if err := d.n.tree.MkdirAll(dnfCache, 0o755); err != nil {
		return err
	}
	return d.n.tree.write(dnfCache+"/"+d.enabled+".solv", []byte(sum), 0o644)
}

// readPrimary reads which packages a repository of dnf has.
func (x *indexes) readPrimary(b []byte, want repodata.File) (index, error) {
	if err := checkSum(b, want); err != nil {
		return nil, err
	}
	list, err := repodata.ParsePrimary(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	have := index{}
	for _, p := range list {
		have[p.Name] = available{version: p.EVR(), file: p.File, size: p.Size, depends: p.Needs}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.bySum == nil {
		x.bySum = map[string]index{}
	}
	x.bySum[want.Sum] = have
	return have, nil
}

// install installs packages named as NAME or NAME-EPOCH:VERSION-RELEASE, with what they need of
// the same repository. A module that does not build fails no installation of rpm's.
func (d dnfRun) install(ctx context.Context, words []string) int {
	all, err := d.read(ctx)
	if err != nil {
		return d.complain(ctx, err.Error())
	}
	base, err := d.base()
	if err != nil {
		return d.complain(ctx, err.Error())
	}
	all = maps.Clone(all) // it is all nodes'
	d.withoutLocked(all)
	todo, missing := d.choose(all, words)
	if missing != "" {
		return d.complain(ctx, "Unable to find a match: "+missing)
	}
	for _, name := range slices.Sorted(maps.Keys(todo)) {
		if _, err := d.fetch(ctx, http.MethodHead, base+all[name].file, 0); err != nil {
			return d.complain(ctx, fmt.Sprintf("Error downloading packages:\n  Cannot download %s: All mirrors were tried", all[name].file))
		}
	}
	if d.n.cfg.Clock.Sleep(ctx, time.Duration(len(todo))*perPackage) != nil {
		return 137
	}
	if err := d.n.add(todo); err != nil {
		return d.complain(ctx, err.Error())
	}
	d.n.place()
	for _, name := range slices.Sorted(maps.Keys(todo)) {
		if _, ok := sourceOf(name); ok && !d.n.build(ctx, d.call, name, todo[name], "") {
			_, _ = fmt.Fprintf(d.Err, "warning: %%post(%s-%s) scriptlet failed, exit status 1\n", name, todo[name])
		}
		if ctx.Err() != nil {
			return 137
		}
	}
	return 0
}

// full is a version with its epoch.
func full(version string) string {
	if strings.Contains(version, ":") {
		return version
	}
	return "0:" + version
}

// choose returns the versions of all packages that are to be installed, or the first word that
// nothing matches.
func (d dnfRun) choose(all index, words []string) (todo map[string]string, missing string) {
	have := d.n.packages()
	todo = map[string]string{}
	var add func(name string)
	add = func(name string) {
		p, ok := all[name]
		if _, twice := todo[name]; twice || !ok || have[name] == p.version {
			return // what no repository has is part of the image
		}
		todo[name] = p.version
		for _, need := range p.depends {
			add(need)
		}
	}
	for _, w := range words {
		found := have[w] != ""
		for name, p := range all {
			if w == name || w == name+"-"+full(p.version) {
				add(name)
				found = true
			}
		}
		if !found {
			return nil, w
		}
	}
	return todo, ""
}

// withoutLocked takes out what the plugin versionlock keeps away.
func (d dnfRun) withoutLocked(all index) {
	if !d.n.hasPackage(lockPlugin) {
		return
	}
	b, _ := d.n.tree.ReadFile(versionLock) // absent: nothing is locked
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		for name, p := range all {
			if !strings.HasPrefix(line, name+"-") {
				continue
			}
			rest := strings.TrimPrefix(line, name+"-")
			if _, _, versioned := strings.Cut(rest, ":"); !versioned || strings.Contains(strings.SplitN(rest, ":", 2)[0], "-") {
				continue // of a package with a longer name
			}
			if ok, err := path.Match(rest, full(p.version)+".x86_64"); err == nil && !ok {
				delete(all, name)
			}
		}
	}
}

// rpmQuery is a question to rpm.
type rpmQuery struct {
	format     string
	names      []string
	query, all bool
}

// parseRPM reads a command line of rpm.
func parseRPM(argv []string) rpmQuery {
	q := rpmQuery{format: "%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}\n"}
	for i := 1; i < len(argv); i++ {
		switch w := argv[i]; {
		case w == "--query" || w == "-q":
			q.query = true
		case w == "--all" || w == "-a":
			q.all = true
		case w == "--queryformat" && i+1 < len(argv):
			i++
			q.format = argv[i]
		case strings.HasPrefix(w, "--queryformat="):
			q.format = strings.TrimPrefix(w, "--queryformat=")
		case !strings.HasPrefix(w, "-"):
			q.names = append(q.names, w)
		}
	}
	return q
}

// runRPM is rpm --query of names, or of all packages, with a format.
func runRPM(_ context.Context, c call) int {
	if !c.n.cfg.Twin.OfRPM() {
		c.fail("command not found")
		return 127
	}
	q, have, status := parseRPM(c.Argv), c.n.packages(), 0
	if q.all {
		q.names = slices.Sorted(maps.Keys(have))
	}
	if !q.query || len(q.names) == 0 && !q.all {
		return c.fail("no arguments given for query")
	}
	for _, name := range q.names {
		if have[name] == "" {
			c.print("package " + name + " is not installed\n")
			status++
			continue
		}
		c.print(c.n.rpmLine(q.format, name, have[name]))
	}
	return min(status, 255)
}

// conditional is a part of a format of rpm that depends on whether a package has a tag.
var conditional = lazyregexp.New(`%\|([A-Z]+)\?\{(.*?)\}(?::\{(.*?)\})?\|`)

// rpmLine is what rpm prints of a package by a format.
func (n *node) rpmLine(format, name, evr string) string {
	epoch, rest, _ := strings.Cut(full(evr), ":")
	version, release, ok := strings.Cut(rest, "-")
	if !ok {
		release = "1"
	}
	tags := map[string]string{"NAME": name, "EPOCHNUM": epoch, "VERSION": version, "RELEASE": release, "ARCH": n.cfg.Twin.Machine()}
	if epoch != "0" {
		tags["EPOCH"] = epoch
	}
	var words []string
	for tag, value := range tags {
		words = append(words, "%{"+tag+"}", value)
	}
	for _, m := range conditional.FindAllStringSubmatch(format, -1) {
		by := m[3]
		if tags[m[1]] != "" {
			by = m[2]
		}
		format = strings.Replace(format, m[0], by, 1)
	}
	return strings.NewReplacer(append(words, `\n`, "\n", `\t`, "\t")...).Replace(format)
}

// runDracut makes the initial file systems of kernels anew.
func runDracut(ctx context.Context, c call) int {
	if c.n.cfg.Clock.Sleep(ctx, 20*time.Second) != nil {
		return 137
	}
	return 0
}
