// SPDX-License-Identifier: Apache-2.0

// Package netbox reads racks, devices and cables of NetBox, by its REST API or from files
// with its answers, and writes them in the inventory language. It changes nothing in
// NetBox. Source: NetBox 4.6, serializers of dcim and "REST API" in its documentation.
package netbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/internal/tlstrust"
)

const (
	pageSize   = 200              // objects that are asked for at once; NetBox gives fewer where MAX_PAGE_SIZE is lower
	maxObjects = 200_000          // of one kind
	maxAnswer  = 32 << 20         // bytes of a page, or of a file
	callTime   = 60 * time.Second // of one request with its answer
	wholeTime  = 15 * time.Minute // of all of them
	// tokenPrefix begins a token of version 2 (users/constants.py), which is sent as
	// Bearer; others are sent as Token.
	tokenPrefix = "nbt_"
)

// list is what is read of one kind of object.
type list struct{ name, path string }

// The lists, by the name of their file.
var (
	racks      = list{"racks", "/api/dcim/racks/"}
	devices    = list{"devices", "/api/dcim/devices/?exclude=config_context"}
	cables     = list{"cables", "/api/dcim/cables/"}
	frontPorts = list{"front-ports", "/api/dcim/front-ports/"}
	rearPorts  = list{"rear-ports", "/api/dcim/rear-ports/"}
	interfaces = list{"interfaces", "/api/dcim/interfaces/"}
)

// Server is a NetBox.
type Server struct {
	URL   string       // http or https, without /api
	Token secret.Value // empty: none is sent
	Trust string       // see package tlstrust
	Site  string       // slug of the site whose objects are read; empty: of all
}

// Read asks NetBox for its racks, devices and cables, for the ports of patch panels that
// these end in, and for the interfaces of the name
// by which nodes boot, where it is not empty.
func (s Server) Read(ctx context.Context, bootInterface string) (Export, error) {
	ctx, cancel := context.WithTimeout(ctx, wholeTime)
	defer cancel()
	base, err := url.Parse(strings.TrimSuffix(s.URL, "/"))
	if err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return Export{}, errkind.New(errkind.Invalid, "the URL of NetBox is none of http or https with a host alone")
	}
	client, err := tlstrust.NewClient(s.Trust, callTime)
	if err != nil {
		return Export{}, err
	}
	defer client.CloseIdleConnections()
	return readAll(bootInterface, func(l list, into func(json.RawMessage) error) error {
		query := url.Values{}
		if s.Site != "" {
			query.Set("site", s.Site)
		}
		if l == interfaces {
			query.Set("name", bootInterface)
		}
		if err := s.pages(ctx, client, base, l, query, into); err != nil {
			return fmt.Errorf("netbox: %s: %w", l.name, err)
		}
		return nil
	})
}

// page is one answer of a list.
type page struct {
	Count   int               `json:"count"`
	Results []json.RawMessage `json:"results"`
}

// pages asks for one page after the other. The addresses of further pages are made here:
// those that the answer gives could lead the token elsewhere.
func (s Server) pages(ctx context.Context, client *http.Client, base *url.URL, l list, query url.Values, into func(json.RawMessage) error) error {
	path, fixed, _ := strings.Cut(l.path, "?")
	for got := 0; ; {
		query.Set("limit", strconv.Itoa(pageSize))
		query.Set("offset", strconv.Itoa(got))
		at := *base
		at.Path, at.RawQuery = strings.TrimSuffix(base.Path, "/")+path, query.Encode()
		if fixed != "" {
			at.RawQuery += "&" + fixed
		}
		var p page
		if err := s.get(ctx, client, at.String(), &p); err != nil {
			return err
		}
		if p.Count > maxObjects {
			return errkind.New(errkind.Refused, "there are %d of them, and %d are the most that are read", p.Count, maxObjects).Do("Give --site.")
		}
		for _, r := range p.Results {
			if err := into(r); err != nil {
				return err
			}
		}
		got += len(p.Results)
		switch {
		case got >= p.Count:
			return nil
		case len(p.Results) == 0:
			return errkind.New(errkind.Corrupt, "it has %d of them, and gives %d", p.Count, got).Do("Somebody changed NetBox meanwhile: try again.")
		}
	}
}

// get asks once. Errors name neither the token nor the address.
func (s Server) get(ctx context.Context, client *http.Client, at string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	if t := strings.TrimSpace(s.Token.Reveal()); t != "" {
		scheme := "Token "
		if strings.HasPrefix(t, tokenPrefix) {
			scheme = "Bearer "
		}
		req.Header.Set("Authorization", scheme+t)
	}
	resp, err := client.Do(req)
	if err != nil {
		if of, ok := errors.AsType[*url.Error](err); ok {
			err = of.Err
		}
		return errkind.New(errkind.Unreachable, "%w", err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		return errkind.New(errkind.Auth, "NetBox answers with status %d", resp.StatusCode).Do("Give a token that may view racks, devices, interfaces, cables, front and rear ports: --token env:NAME.")
	case http.StatusNotFound:
		return errkind.New(errkind.NotFound, "NetBox answers with status 404").Do("--url is the address of NetBox itself, without /api.")
	default:
		return errkind.New(errkind.Refused, "NetBox answers with status %d", resp.StatusCode)
	}
	return decode(resp.Body, into)
}

// decode reads one JSON document of bounded size.
func decode(r io.Reader, into any) error {
	b, err := io.ReadAll(io.LimitReader(r, maxAnswer+1))
	switch {
	case err != nil:
		return errkind.New(errkind.Unreachable, "%w", err)
	case len(b) > maxAnswer:
		return errkind.New(errkind.Refused, "the answer has more than %d MiB", maxAnswer>>20)
	}
	if err := json.Unmarshal(b, into); err != nil {
		return errkind.New(errkind.Corrupt, "no answer of NetBox: %w", err)
	}
	return nil
}

// ReadFolder reads what was saved of NetBox: racks.json, devices.json and cables.json,
// front-ports.json and rear-ports.json where cables end in patch panels, and
// interfaces.json where nodes have a name by which they boot; each a page as the API gives
// it, or its results alone.
func ReadFolder(folder, bootInterface string) (Export, error) {
	return readAll(bootInterface, func(l list, into func(json.RawMessage) error) error {
		name := filepath.Join(folder, l.name+".json")
		results, err := readFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return errkind.New(errkind.NotFound, "%s is not there", name).Do("Save there what `curl -H \"Authorization: Token $TOKEN\" URL/api/dcim/" + l.name + "/?limit=0` prints.")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, r := range results {
			if err := into(r); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
}

// readFile reads the results of a saved page; one that is not the whole list is refused.
func readFile(name string) ([]json.RawMessage, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var raw json.RawMessage
	if err := decode(f, &raw); err != nil {
		return nil, err
	}
	var results []json.RawMessage
	if json.Unmarshal(raw, &results) == nil {
		return results, nil
	}
	var p page
	if err := json.Unmarshal(raw, &p); err != nil || p.Results == nil {
		return nil, errkind.New(errkind.Corrupt, "neither a page of NetBox's API nor its results")
	}
	if len(p.Results) < p.Count {
		return nil, errkind.New(errkind.Invalid, "it holds %d of %d objects", len(p.Results), p.Count).Do("Save the whole list: ?limit=0.")
	}
	return p.Results, nil
}

// readAll reads every list through read.
func readAll(bootInterface string, read func(list, func(json.RawMessage) error) error) (e Export, err error) {
	lists := []struct {
		list
		into func(json.RawMessage) error
	}{{racks, appendTo(&e.Racks)}, {devices, appendTo(&e.Devices)}, {cables, appendTo(&e.Cables)}, {frontPorts, appendTo(&e.FrontPorts)}, {rearPorts, appendTo(&e.RearPorts)}, {interfaces, appendTo(&e.Interfaces)}}
	for _, l := range lists {
		if l.list == interfaces && bootInterface == "" || (l.list == frontPorts || l.list == rearPorts) && !e.overPanels() {
			continue
		}
		if err := read(l.list, l.into); err != nil {
			return Export{}, err
		}
	}
	return e, nil
}

// overPanels: a cable ends in a port of a patch panel.
func (e Export) overPanels() bool {
	return slices.ContainsFunc(e.Cables, func(x Cable) bool {
		return slices.ContainsFunc(x.ends(), func(w where) bool { return w.termination().panel() })
	})
}

// appendTo decodes objects into a list.
func appendTo[T any](to *[]T) func(json.RawMessage) error {
	return func(raw json.RawMessage) error {
		if len(*to) >= maxObjects {
			return errkind.New(errkind.Refused, "more than %d objects", maxObjects)
		}
		var v T
		if err := json.Unmarshal(raw, &v); err != nil {
			return errkind.New(errkind.Corrupt, "object %d is not as NetBox has it: %w", len(*to)+1, err)
		}
		*to = append(*to, v)
		return nil
	}
}
