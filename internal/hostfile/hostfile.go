// SPDX-License-Identifier: Apache-2.0

// Package hostfile knows the files of a Linux system that host settings are written
// into, and their content. The agent writes them into a new system, and the controller
// into one that runs. Names of files are relative to the root of the system.
package hostfile

import (
	"maps"
	"slices"
	"strings"
)

// Names of the files.
const (
	// SysctlFile is read after all others of sysctl.d(5), 99-sysctl.conf among them.
	SysctlFile = "etc/sysctl.d/99-zz-ironrail.conf"
	// SudoersFile is read by sudo, in the order of names; sudo skips names with a dot.
	SudoersFile = "etc/sudoers.d/90-ironrail"
	// LocaleFile is that of locale.conf(5); DebianLocaleFile is read by PAM on Debian and
	// Ubuntu.
	LocaleFile, DebianLocaleFile = "etc/locale.conf", "etc/default/locale"
)

// written begins files that nothing but ironrail writes.
const written = "# Written by ironrail, from the host block of the site.\n"

// Sysctl is the content of SysctlFile.
func Sysctl(values map[string]string) string {
	var b strings.Builder
	b.WriteString(written)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		b.WriteString(key + " = " + values[key] + "\n")
	}
	return b.String()
}

// SysctlPath is the file in which the kernel shows a setting. A key has dots, or slashes
// where a part of it has a dot, such as net/ipv4/conf/eth0.100/rp_filter (sysctl.d(5): the
// first of the two that stands there counts).
func SysctlPath(key string) string {
	if i := strings.IndexAny(key, "./"); i >= 0 && key[i] == '/' {
		return "proc/sys/" + key
	}
	swap := strings.NewReplacer(".", "/", "/", ".")
	return "proc/sys/" + swap.Replace(key)
}

// IsSameValue compares the value of a setting with what the kernel shows: numbers are
// parted by tabs there.
func IsSameValue(want, have string) bool {
	return slices.Equal(strings.Fields(want), strings.Fields(have))
}

// Sudoers is the content of SudoersFile: members of these groups may become root with
// their own password.
func Sudoers(groups []string) string {
	var b strings.Builder
	b.WriteString(written)
	for _, g := range groups {
		b.WriteString("%" + g + " ALL=(ALL:ALL) ALL\n")
	}
	return b.String()
}

// Locale is the content of LocaleFile and of DebianLocaleFile.
func Locale(name string) string { return "LANG=" + name + "\n" }

// IsSameLocale compares the names of two locales; that of the character set is written in
// several ways: en_US.UTF-8, en_US.utf8.
func IsSameLocale(a, b string) bool { return normalizeLocale(a) == normalizeLocale(b) }

func normalizeLocale(name string) string {
	base, charset, ok := strings.Cut(name, ".")
	if !ok {
		return name
	}
	charset, modifier, _ := strings.Cut(charset, "@")
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(charset))
	return base + "." + plain + "@" + modifier
}

// NoUpdatesFile tells apt's timers to do nothing, where there is apt; NoUpdates is its
// content.
const (
	NoUpdatesFile = "etc/apt/apt.conf.d/99ironrail-no-updates"
	NoUpdates     = `// Written by ironrail: packages change when somebody changes them, on all nodes alike.
APT::Periodic::Enable "0";
APT::Periodic::Update-Package-Lists "0";
APT::Periodic::Unattended-Upgrade "0";
`
)

// UpdateUnits are the units that bring updates by themselves, or take the locks of the
// package manager for it. They are masked where they are.
var UpdateUnits = []string{
	"apt-daily.timer", "apt-daily-upgrade.timer", "unattended-upgrades.service",
	"dnf-automatic.timer", "dnf-automatic-install.timer", "dnf-automatic-download.timer", "dnf-automatic-notifyonly.timer", "dnf-makecache.timer",
}
