// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/internal/tlstrust"
	"github.com/ironrail/ironrail/inventory/language"
	"github.com/ironrail/ironrail/inventory/unit"
)

// maxNotifyTimeout bounds one try: several are made before the next notice is sent.
const maxNotifyTimeout = time.Minute

// ownHeaders are set by the sender itself.
var ownHeaders = []string{"Host", "Content-Length", "Content-Type", "Transfer-Encoding", "Connection", "User-Agent"}

// notify decodes one block, and reports what cannot be sent.
func (l *loader) notify(b *language.Body) *Notify {
	n := &Notify{Kind: b.Kind, Name: b.Name, URL: language.Get[NotifyURL](b, "url"), Token: language.Get[secret.Ref](b, "token"), CA: language.Get[string](b, "ca"),
		On: language.GetList[string](b, "on"), Timeout: language.Get[unit.Duration](b, "timeout"), Lasts: language.Get[unit.Duration](b, "lasts"), Decl: b.Decl}
	if len(n.On) == 0 {
		n.On = NotifyOn
	}
	if first := slices.IndexFunc(l.inv.Notifies, func(x *Notify) bool { return x.Name == n.Name }); first >= 0 {
		l.diags.Add("name.duplicate", b.Labels[1], "Name is taken", fmt.Sprintf("There is another notify block %q; messages name them.", n.Name)).Also("the first", l.inv.Notifies[first].Decl)
	}
	add := func(attribute, format string, args ...any) {
		l.diags.Add("notify.target", b.Range(attribute), "Cannot be notified", fmt.Sprintf(format, args...)).In(b.Decl)
	}
	if n.Timeout <= 0 || n.Timeout > maxNotifyTimeout {
		add("timeout", "A try lasts more than nothing and no longer than %v.", maxNotifyTimeout)
	}
	if why := tlstrust.FindFault(n.CA); why != "" {
		add("ca", "The ca %s. Write ca = file(\"ca.crt\"), or the pin of the server's key, \"sha256:\" and 64 hex digits.", why)
	}
	for _, h := range b.Blocks("header") {
		name := http.CanonicalHeaderKey(h.Name)
		at := h.Labels[0]
		switch {
		case !httpguts.ValidHeaderFieldName(h.Name) || slices.Contains(ownHeaders, name):
			l.diags.Add("notify.target", at, "Cannot be notified", fmt.Sprintf("%q is no header that can be given: it is set by ironrail itself, or has signs that no name of a header has.", h.Name)).In(b.Decl)
		case name == "Authorization" && n.Token != "", slices.ContainsFunc(n.Headers, func(x NotifyHeader) bool { return x.Name == name }):
			l.diags.Add("notify.target", at, "Cannot be notified", fmt.Sprintf("The header %s is given twice: token is sent as Authorization.", name)).In(b.Decl)
		}
		n.Headers = append(n.Headers, NotifyHeader{name, language.Get[secret.Ref](h, "value")})
	}
	if len(n.Headers)+len(n.Token) > 0 && SentInClear(n.URL.Text) {
		l.diags.Add("notify.clear", b.Range("url"), "Secret sent in clear", "The token and the headers go over http: everybody on the way reads them. Use https.").In(b.Decl).Warn()
	}
	return n
}

// SentInClear reports whether what is sent to a URL crosses a network unencrypted.
func SentInClear(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" {
		return false
	}
	a, err := netip.ParseAddr(u.Hostname())
	return err != nil && u.Hostname() != "localhost" || err == nil && !a.IsLoopback()
}
