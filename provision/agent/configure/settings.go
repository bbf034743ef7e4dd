// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"path"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/interfaces"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// agentPath is where the agent is installed on a node, below its root.
const agentPath = "usr/local/sbin/ironrail-agent"

// settings are checked parameters, ready to be written.
type settings struct {
	wire.ConfigureParams
	layout interfaces.Layout // of its networks, as they were found
}

// What may stand in a setting. These values end up in files that others parse
// (systemd, GRUB, sshd), so nothing with a meaning there gets through.
var (
	hostLabel   = lazyregexp.New(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	domainName  = lazyregexp.New(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	timeServer  = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9.:-]{0,252}[A-Za-z0-9])?$`)
	kernelArg   = lazyregexp.New(`^[A-Za-z0-9_.,:=/@%+~^!*\[\]()-]+$`)
	consoleName = lazyregexp.New(`^tty[A-Za-z0-9]+(,[0-9]+[a-z0-9]*)?$`)
	zoneName    = lazyregexp.New(`^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$`)
)

// checked is values with the form that they must have.
type checked struct {
	what   string
	form   *lazyregexp.Regexp
	values []string
}

// prepare checks every value before anything is touched.
func prepare(p wire.ConfigureParams) (settings, error) {
	bad := func(what, value string) (settings, error) {
		return settings{}, errkind.New(errkind.Internal, "host settings: %s %q is not usable", what, value)
	}
	for _, s := range append([]checked{
		{"host name", hostLabel, []string{p.Hostname}},
		{"domain", domainName, optional(p.Domain)},
		{"time zone", zoneName, optional(p.Timezone)},
		{"time server", timeServer, p.TimeServers},
		{"kernel argument", kernelArg, p.KernelArgs},
		{"console", consoleName, optional(p.Console)},
	}, settings{ConfigureParams: p}.hostValues()...) {
		if i := slices.IndexFunc(s.values, func(v string) bool { return !s.form.MatchString(v) }); i >= 0 {
			return bad(s.what, s.values[i])
		}
	}
	if wrong := wrongAddress(p); wrong != "" {
		return bad("address", wrong)
	}
	if err := interfaces.Check(p.Network); err != nil {
		return settings{}, err
	}
	for _, k := range p.AuthorizedKeys {
		if _, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(k)); err != nil || len(bytes.TrimSpace(rest)) > 0 {
			return bad("authorized key", k)
		}
	}
	for _, f := range p.Files {
		if !path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path || f.Path == "/" || fs.FileMode(f.Mode)&^0o777 != 0 {
			return bad("file", f.Path)
		}
	}
	return settings{ConfigureParams: p}, nil
}

// wrongAddress is the first address that is none; "": there is none.
func wrongAddress(p wire.ConfigureParams) string {
	if _, err := netip.ParsePrefix(p.Address); err != nil || p.BootNIC.IsZero() {
		return p.Address + " on " + p.BootNIC.String()
	}
	for _, a := range append(optional(p.Gateway), p.DNS...) {
		if _, err := netip.ParseAddr(a); err != nil {
			return a
		}
	}
	return ""
}

// optional is the value of a setting that may be left out.
func optional(v string) []string {
	if v == "" {
		return nil
	}
	return []string{v}
}

// write puts everything below root and returns the public SSH host key. self opens
// the agent's own file. fresh says that the install was never configured.
func (s settings) write(root rootfs.Root, self func() (io.ReadCloser, error), fresh bool) (key string, err error) {
	steps := []struct {
		name string
		do   func() error
	}{
		{"name", func() error { return s.name(root) }},
		{"network", func() error { return s.network(root) }},
		{"time", func() error { return s.time(root) }},
		{"machine id", func() error { return machineID(root) }},
		{"ssh", func() error { key, err = hostKey(root, s.Hostname, fresh); return err }},
		{"authorized keys", func() error { return s.authorize(root) }},
		{"boot loader", func() error { return s.bootLoader(root) }},
		{"host", func() error { return s.host(root) }},
		{"user data", func() error { return s.userData(root) }},
		{"files", func() error { return s.files(root) }},
		{"agent", func() error { return s.agent(root, self) }},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			return "", fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return key, nil
}

// name writes the host name and the names that resolve without DNS.
func (s settings) name(root rootfs.Root) error {
	if err := rootfs.WriteText(root, "etc/hostname", s.Hostname+"\n", 0o644); err != nil {
		return err
	}
	names := s.Hostname
	if s.Domain != "" {
		names = s.Hostname + "." + s.Domain + " " + s.Hostname
	}
	own := netip.MustParsePrefix(s.Address).Addr() // prepare has checked it
	text := "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n" + own.String() + " " + names + "\n"
	return rootfs.WriteText(root, "etc/hosts", text, 0o644)
}

// time writes the zone and the time servers, for chrony where the image has it,
// else for systemd-timesyncd.
func (s settings) time(root rootfs.Root) error {
	if s.Timezone != "" {
		zone := "usr/share/zoneinfo/" + s.Timezone
		if !rootfs.Exists(root, zone) && s.Timezone != "UTC" {
			return errkind.New(errkind.NotFound, "the image has no time zone %s", s.Timezone).Do("Correct the time zone, or add tzdata to the image.")
		}
		if err := rootfs.Link(root, "/"+zone, "etc/localtime"); err != nil {
			return err
		}
		if err := rootfs.WriteText(root, "etc/timezone", s.Timezone+"\n", 0o644); err != nil {
			return err
		}
	}
	if len(s.TimeServers) == 0 {
		return nil
	}
	if rootfs.Exists(root, "etc/chrony") {
		text := ""
		for _, server := range s.TimeServers {
			text += "server " + server + " iburst\n"
		}
		return rootfs.WriteText(root, "etc/chrony/sources.d/ironrail.sources", text, 0o644)
	}
	if conf, err := fs.ReadFile(root.FS(), chronyConf); err == nil {
		return rootfs.WriteText(root, chronyConf, editChrony(string(conf), s.TimeServers), 0o644)
	}
	return rootfs.WriteText(root, "etc/systemd/timesyncd.conf.d/10-ironrail.conf", "[Time]\nNTP="+strings.Join(s.TimeServers, " ")+"\n", 0o644)
}

// chronyConf is the configuration of chrony where it has no folder of its own.
const chronyConf = "etc/chrony.conf"

// editChrony puts time servers in the place of those of a configuration (chrony.conf(5)).
func editChrony(text string, servers []string) string {
	var out strings.Builder
	for _, server := range servers {
		out.WriteString("server " + server + " iburst\n")
	}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) > 0 && slices.Contains([]string{"server", "pool", "peer", "sourcedir"}, strings.ToLower(words[0])) {
			continue
		}
		out.WriteString(line)
	}
	return out.String()
}

// machineID empties the id that came with the image; systemd fills it in at the
// next boot. An absent file would mean "first boot" and apply unit presets.
func machineID(root rootfs.Root) error {
	if err := rootfs.WriteText(root, "etc/machine-id", "", 0o444); err != nil {
		return err
	}
	if rootfs.Exists(root, "var/lib/dbus") {
		return rootfs.Link(root, "/etc/machine-id", "var/lib/dbus/machine-id")
	}
	return nil
}

// authorize lets the controller in as root, by key.
func (s settings) authorize(root rootfs.Root) error {
	if err := root.MkdirAll("root/.ssh", 0o700); err != nil {
		return err
	}
	if err := root.Chmod("root/.ssh", 0o700); err != nil {
		return err
	}
	text := ""
	for _, k := range s.AuthorizedKeys {
		text += strings.TrimSpace(k) + "\n"
	}
	return rootfs.WriteText(root, "root/.ssh/authorized_keys", text, 0o600)
}

// arguments are the kernel's, with the serial console last, so that it is /dev/console.
func (s settings) arguments() []string {
	args := slices.Clone(s.KernelArgs)
	if s.Console != "" {
		args = append(args, "console=tty0", "console="+s.Console)
	}
	return args
}

// bootLoader writes what the grub.cfg of images that ironrail made takes in.
func (s settings) bootLoader(root rootfs.Root) error {
	if hasEntries(root) {
		return nil
	}
	text := "# Written by ironrail when this node was installed.\nset ironrail_args=\"" + strings.Join(s.arguments(), " ") + "\"\n"
	return rootfs.WriteText(root, "boot/grub/ironrail.cfg", text, 0o644)
}

// files writes the extra files.
func (s settings) files(root rootfs.Root) error {
	for _, f := range s.Files {
		if err := rootfs.Write(root, strings.TrimPrefix(f.Path, "/"), bytes.NewReader(f.Content), fs.FileMode(f.Mode)); err != nil {
			return err
		}
	}
	return nil
}

// agent installs this very program.
func (s settings) agent(root rootfs.Root, self func() (io.ReadCloser, error)) error {
	if !s.Agent {
		return nil
	}
	f, err := self()
	if err != nil {
		return err
	}
	defer f.Close()
	return rootfs.Write(root, agentPath, f, 0o755)
}
