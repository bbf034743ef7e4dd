// SPDX-License-Identifier: Apache-2.0

package installed

import (
	"slices"
	"strings"
)

// LicenseRef begins the name of a licence that is none of SPDX's list.
const LicenseRef = "LicenseRef-"

// same are names of licences that mean one of SPDX's list, in lower case: those of Debian's
// copyright-format 1.0, and those of Fedora before it took SPDX's. What may mean several
// licences (BSD, Artistic, GPL without a version) is not here.
var same = map[string]string{
	"expat": "MIT", "cc0": "CC0-1.0", "bsl": "BSL-1.0", "openldap-2.8": "OLDAP-2.8", "mplv2.0": "MPL-2.0", "mplv1.1": "MPL-1.1", "asl 2.0": "Apache-2.0", "asl 1.1": "Apache-1.1",
	"apache-2": "Apache-2.0", "boost": "BSL-1.0", "zlib": "Zlib", "libpng": "Libpng",
}

// listed are licences of SPDX's list (spdx.org/licenses) that packages name as SPDX does.
var listed = strings.Fields(`
0BSD AFL-2.1 AFL-3.0 APSL-2.0 Apache-1.0 Apache-1.1 Apache-2.0 Artistic-2.0 BSD-1-Clause BSD-2-Clause BSD-2-Clause-Patent BSD-3-Clause BSD-3-Clause-Clear BSD-4-Clause
BSL-1.0 Beerware CC-BY-3.0 CC-BY-4.0 CC-BY-SA-3.0 CC-BY-SA-4.0 CC0-1.0 CDDL-1.0 CDDL-1.1 CPL-1.0 ClArtistic EPL-1.0 EPL-2.0 EUPL-1.2 FSFAP FSFUL FSFULLR FTL HPND ICU IJG
ISC Info-ZIP Libpng MIT MIT-0 MPL-1.0 MPL-1.1 MPL-2.0 MS-PL NCSA NTP OFL-1.0 OFL-1.1 OLDAP-2.8 OpenSSL PHP-3.01 PSF-2.0 PostgreSQL Python-2.0 QPL-1.0 Ruby SMLNJ SGI-B-2.0 Sleepycat
TCL TCP-wrappers Unicode-3.0 Unicode-DFS-2016 Unlicense UPL-1.0 Vim W3C WTFPL X11 Zlib bzip2-1.0.6 curl mpich2
GPL-1.0-only GPL-1.0-or-later GPL-2.0-only GPL-2.0-or-later GPL-3.0-only GPL-3.0-or-later LGPL-2.0-only LGPL-2.0-or-later LGPL-2.1-only LGPL-2.1-or-later LGPL-3.0-only
LGPL-3.0-or-later AGPL-3.0-only AGPL-3.0-or-later GFDL-1.1-only GFDL-1.1-or-later GFDL-1.2-only GFDL-1.2-or-later GFDL-1.3-only GFDL-1.3-or-later
GFDL-1.2-no-invariants-only GFDL-1.2-no-invariants-or-later GFDL-1.3-no-invariants-only GFDL-1.3-no-invariants-or-later`)

// exceptions are those of SPDX's list that a name means alone.
var exceptions = map[string]string{
	"linux-syscall-note": "Linux-syscall-note", "linux-syscall-note exception": "Linux-syscall-note", "classpath exception": "Classpath-exception-2.0", "classpath-exception-2.0": "Classpath-exception-2.0",
	"llvm-exception": "LLVM-exception", "llvm exception": "LLVM-exception", "gcc-exception-3.1": "GCC-exception-3.1", "gcc-exception-2.0": "GCC-exception-2.0",
}

// families are licences with versions that may be "or later", by the names that they go by.
var families = []struct{ prefix, spdx string }{
	{"gfdl-niv-", "GFDL-%-no-invariants"}, {"gfdl-", "GFDL-%"}, {"agpl-", "AGPL-%"}, {"lgpl-", "LGPL-%"}, {"gpl-", "GPL-%"},
	{"agplv", "AGPL-%"}, {"lgplv", "LGPL-%"}, {"gplv", "GPL-%"},
}

// expressionOf is the SPDX expression (SPDX 2.3, annex D) of what a package declares:
// names, "and", "or", "with", parentheses, and Debian's comma before an operator, which
// binds last. "": it is no such expression.
func expressionOf(declared string) string {
	if len(declared) == 0 || len(declared) > 2000 {
		return ""
	}
	var parts, operators []string
	for part := range strings.SplitSeq(declared, ",") {
		if len(parts) > 0 {
			operator, rest, _ := strings.Cut(strings.TrimSpace(part), " ")
			operator = strings.ToUpper(operator)
			if operator != "AND" && operator != "OR" {
				return ""
			}
			part, operators = rest, append(operators, operator)
		}
		p := parser{words: strings.Fields(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(part))}
		e, ok := p.any("OR", "AND")
		if !ok || len(p.words) > 0 {
			return ""
		}
		parts = append(parts, e)
	}
	if len(parts) == 1 {
		return parts[0]
	}
	if slices.Contains(operators, "AND") && slices.Contains(operators, "OR") {
		return "" // nobody says which binds first
	}
	for i, p := range parts {
		if strings.Contains(p, " ") {
			parts[i] = "(" + p + ")"
		}
	}
	return strings.Join(parts, " "+operators[0]+" ")
}

// parser reads an expression word by word.
type parser struct{ words []string }

// any reads operands with the first operator between them; those of the operators behind
// it bind closer.
func (p *parser) any(operators ...string) (string, bool) {
	if len(operators) == 0 {
		return p.operand()
	}
	e, ok := p.any(operators[1:]...)
	for ok && len(p.words) > 0 && strings.EqualFold(p.words[0], operators[0]) {
		p.words = p.words[1:]
		var next string
		next, ok = p.any(operators[1:]...)
		e += " " + operators[0] + " " + next
	}
	return e, ok
}

// operand reads a name of one or more words, or an expression in parentheses.
func (p *parser) operand() (string, bool) {
	if len(p.words) > 0 && p.words[0] == "(" {
		p.words = p.words[1:]
		e, ok := p.any("OR", "AND")
		if !ok || len(p.words) == 0 || p.words[0] != ")" {
			return "", false
		}
		p.words = p.words[1:]
		return "(" + e + ")", true
	}
	end := slices.IndexFunc(p.words, func(w string) bool {
		return w == "(" || w == ")" || strings.EqualFold(w, "and") || strings.EqualFold(w, "or")
	})
	if end < 0 {
		end = len(p.words)
	}
	name := strings.Join(p.words[:end], " ")
	p.words = p.words[end:]
	id := nameOf(name)
	return id, id != "" && len(name) <= maxName
}

// maxName bounds the name of a licence: what is longer is the text of one.
const maxName = 80

// nameOf is a licence, with its exception, of SPDX's list where the name means one of it;
// else one of another name. "": the name has no letter.
func nameOf(name string) string {
	license, exception, with := cutFold(name, " with ")
	id := listedName(license)
	if e := exceptions[strings.ToLower(exception)]; with && id != "" && e != "" {
		return id + " WITH " + e
	}
	if !with && id != "" {
		return id
	}
	ref := strings.Trim(strings.Map(refRune, strings.ReplaceAll(name, "+", "-plus")), "-") // GPL+ is not GPL
	if ref == "" {
		return ""
	}
	return LicenseRef + ref
}

// cutFold is strings.Cut without regard to case.
func cutFold(s, sep string) (before, after string, found bool) {
	at := strings.Index(strings.ToLower(s), sep)
	if at < 0 || len(strings.ToLower(s)) != len(s) {
		return s, "", false
	}
	return s[:at], s[at+len(sep):], true
}

// refRune is a sign of a name as it may stand behind LicenseRef.
func refRune(c rune) rune {
	if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' {
		return c
	}
	return '-'
}

// listedName is the licence of SPDX's list that a name means; "": none, or several.
func listedName(name string) string {
	low := strings.ToLower(name)
	if id, ok := same[low]; ok {
		return id
	}
	if at := slices.IndexFunc(listed, func(id string) bool { return strings.ToLower(id) == low }); at >= 0 {
		return listed[at]
	}
	for _, f := range families {
		version, ok := strings.CutPrefix(low, f.prefix)
		if !ok {
			continue
		}
		version, later := strings.CutSuffix(version, "+")
		if !strings.Contains(version, ".") {
			version += ".0"
		}
		how := "-only"
		if later {
			how = "-or-later"
		}
		if id := strings.Replace(f.spdx, "%", version, 1) + how; slices.Contains(listed, id) {
			return id
		}
	}
	return ""
}
