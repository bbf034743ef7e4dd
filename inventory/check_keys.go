// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/inventory/language"
)

// checkKeys warns of administrators' keys that sshd would pass over: it says
// nothing of such a line, and who has the key stays outside.
func (l *loader) checkKeys(b *language.Body) {
	for i, text := range language.GetList[string](b, "authorized_keys") {
		if strings.Contains(text, "PRIVATE KEY") {
			l.diags.Add("secret.clear", b.ElementRange("authorized_keys", i), "Secret in clear", "This is a private key, which belongs to its owner alone. Everybody who reads the site's files reads it too, and nobody can log in by it. Give the public one, the file with .pub at the end of its name, and make a new pair.").In(b.Decl).Warn()
			continue
		}
		if bad := badKeys(text); bad != "" {
			l.diags.Add("host.key", b.ElementRange("authorized_keys", i), "Key that opens nothing", bad+". sshd passes over it without a word, and its owner cannot log in. Write a line as in the .pub file that ssh-keygen made: type, key and comment.").In(b.Decl).Warn()
		}
	}
}

// badKeys says what is wrong with the first line that sshd would pass over; ""
// when there are keys, and all of them are whole.
func badKeys(text string) string {
	keys := 0
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		keys++
		if _, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line)); err != nil {
			return fmt.Sprintf("%q (line %d) is no OpenSSH public key: %s", beginningOf(line), n+1, describeUnreadable(line))
		}
	}
	if keys == 0 {
		return "There is no key in it"
	}
	return ""
}

// beginningOf is enough of a line to find it.
func beginningOf(line string) string {
	if r := []rune(line); len(r) > 32 {
		return string(r[:32]) + "..."
	}
	return line
}

// describeUnreadable says what is wrong with a line that is no key: its type, the base64,
// or what that holds (RFC 4253, 6.6: the type again, then the key).
func describeUnreadable(line string) string {
	fields := strings.Fields(line)
	at := 0
	for at < len(fields)-1 && !strings.HasPrefix(fields[at+1], "AAAA") { // options stand before the type
		at++
	}
	if at == len(fields)-1 {
		return "it has no type with a key in base64 behind it"
	}
	kind, data := fields[at], fields[at+1]
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return "its key is not whole base64"
	}
	if key, err := ssh.ParsePublicKey(raw); err == nil && key.Type() != kind {
		return "it says " + strconv.Quote(kind) + " and its key is of type " + strconv.Quote(key.Type())
	}
	return "its key is cut off, or of a type that is not known"
}
