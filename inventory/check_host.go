// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/internal/userdata"
	"github.com/ironrail/ironrail/inventory/language"
)

// What host settings may look like: they end up in files that others parse.
var (
	sysctlKey   = lazyregexp.New(`^(abi|crypto|debug|dev|fs|kernel|net|sunrpc|user|vm)([./][A-Za-z0-9_:-]+)+$`)
	sysctlValue = lazyregexp.New(`^[!-~]+( [!-~]+)*$`)
	localeName  = lazyregexp.New(`^(C|POSIX|[a-z]{2,3}(_[A-Z]{2})?)(\.[A-Za-z0-9-]+)?(@[a-z]+)?$`)
	groupName   = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
)

// checkHost reports values of a host block that no system takes.
func (l *loader) checkHost(b *language.Body, h *HostSettings) {
	for _, key := range slices.Sorted(maps.Keys(h.Sysctl)) {
		switch value := h.Sysctl[key]; {
		case !sysctlKey.MatchString(key):
			l.diags.Add("language.value", b.Range("sysctl"), "Wrong value of sysctl", fmt.Sprintf(`%q is no setting of the kernel; write it as in sysctl.d(5), such as "vm.swappiness", without stars.`, key)).In(b.Decl)
		case !sysctlValue.MatchString(value):
			l.diags.Add("language.value", b.Range("sysctl"), "Wrong value of sysctl", fmt.Sprintf("%q is no value for %s; write words and numbers with one space between them.", value, key)).In(b.Decl)
		}
	}
	if h.Locale != "" && !localeName.MatchString(h.Locale) {
		l.diags.Add("language.value", b.Range("locale"), "Wrong value of locale", fmt.Sprintf(`%q is no locale; write one such as "C.UTF-8" or "en_US.UTF-8".`, h.Locale)).In(b.Decl)
	}
	if h.UserData == "" {
		return
	}
	if wrong := userdata.Check(h.UserData); wrong != "" {
		l.diags.Add("language.value", b.Range("user_data"), "Wrong value of user_data", fmt.Sprintf(`User data is not usable: %s. Write a script that begins with "#!/bin/sh", or settings for cloud-init that begin with "#cloud-config".`, wrong)).In(b.Decl)
	}
}

// checkGroups reports groups whose names sudo would not read.
func (l *loader) checkGroups(b *language.Body) {
	for i, name := range language.GetList[string](b, "sudo_groups") {
		if !groupName.MatchString(name) {
			l.diags.Add("language.value", b.ElementRange("sudo_groups", i), "Wrong value of sudo_groups", fmt.Sprintf("%q is no name of a group; write letters, digits and _ . - only.", name)).In(b.Decl)
		}
	}
}
