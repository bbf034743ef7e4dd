// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
)

// diagnosticTypes are the kinds of diagnostic data (LogService schema,
// DiagnosticDataType) by how much of the node they are about. "OEM" needs a name of the
// maker's, such as AllLogs of the baseboard of MI300X.
var diagnosticTypes = []string{"Manager", "Device", "OS", "PreOS", "CPER", "OEM"}

// collector is a log service that collects diagnostic data.
type collector struct {
	target, entries string
	body            map[string]string
}

// CollectDiagnostics makes the BMC collect what it knows for its maker's support
// (LogService.CollectDiagnosticData, Redfish schema LogService 1.2 and later), waits for the
// task within ctx, and fetches what the new log entry has as its attachment, of at most so
// many bytes. A BMC without the action is an error of kind unsupported.
func (c *Client) CollectDiagnostics(ctx context.Context, most int64) ([]byte, error) {
	service, err := c.findCollector(ctx)
	if err != nil {
		return nil, err
	}
	before, err := c.attachments(ctx, service.entries)
	if err != nil {
		return nil, err
	}
	a, err := c.post(ctx, service.target, service.body)
	if err != nil {
		return nil, err
	}
	if task := a.task(); task != "" {
		if err := c.WaitTask(ctx, task); err != nil {
			return nil, err
		}
	}
	after, err := c.attachments(ctx, service.entries)
	if err != nil {
		return nil, err
	}
	for _, path := range slices.Backward(after) {
		if slices.Contains(before, path) {
			continue
		}
		got, err := c.do(ctx, request{method: http.MethodGet, path: path, most: most})
		return got.body, err
	}
	return nil, errkind.New(errkind.NotFound, "the BMC says that diagnostic data is collected, and no log entry of %s has it", service.entries)
}

// task is the task that an answer names: in its body, else in its header.
func (a answer) task() string {
	var doc struct {
		ID   text `json:"@odata.id"`
		Type text `json:"@odata.type"`
	}
	if len(a.body) > 0 && a.decode(&doc) == nil && strings.Contains(string(doc.Type), "Task") {
		if path, ok := cleanPath(string(doc.ID)); ok {
			return path
		}
	}
	return a.location()
}

// findCollector finds the first log service, of the manager or the system, that has the
// action.
func (c *Client) findCollector(ctx context.Context) (collector, error) {
	s, err := c.system(ctx)
	if err != nil {
		return collector{}, err
	}
	var m struct{ LogServices link }
	if c.place.manager != "" {
		if _, err := c.get(ctx, c.place.manager, &m); err != nil && !isStatus(err, http.StatusNotFound) {
			return collector{}, err
		}
	}
	for _, l := range []link{m.LogServices, s.LogServices} {
		if l == "" {
			continue
		}
		services, err := c.members(ctx, string(l), maxSystems)
		if err != nil && !isStatus(err, http.StatusNotFound) {
			return collector{}, err
		}
		for _, service := range services {
			if found, ok, err := c.collectorOf(ctx, string(service)); ok || err != nil {
				return found, err
			}
		}
	}
	return collector{}, unsupported("diagnostic data")
}

// collectorOf reads a log service; false where it does not collect.
func (c *Client) collectorOf(ctx context.Context, service string) (collector, bool, error) {
	var doc struct {
		Entries link
		Actions struct {
			Collect struct {
				Target text   `json:"target"`
				Types  []text `json:"DiagnosticDataType@Redfish.AllowableValues"`
				OEM    []text `json:"OEMDiagnosticDataType@Redfish.AllowableValues"`
			} `json:"#LogService.CollectDiagnosticData"`
		}
	}
	if _, err := c.get(ctx, service, &doc); err != nil {
		if isStatus(err, http.StatusNotFound) {
			err = nil
		}
		return collector{}, false, err
	}
	target, ok := cleanPath(string(doc.Actions.Collect.Target))
	if !ok || doc.Entries == "" {
		return collector{}, false, nil
	}
	body := map[string]string{"DiagnosticDataType": diagnosticTypes[0]}
	for _, t := range slices.Backward(diagnosticTypes) {
		if slices.Contains(doc.Actions.Collect.Types, text(t)) && (t != "OEM" || len(doc.Actions.Collect.OEM) > 0) {
			body["DiagnosticDataType"] = t
		}
	}
	if body["DiagnosticDataType"] == "OEM" {
		body["OEMDiagnosticDataType"] = string(doc.Actions.Collect.OEM[0])
	}
	return collector{target, string(doc.Entries), body}, true, nil
}

// attachments are the paths of what the entries of a log have attached, in the log's order.
func (c *Client) attachments(ctx context.Context, path string) (list []string, err error) {
	for page := 0; path != "" && page < maxPages && len(list) < maxEntries; page++ {
		var part struct {
			Members []struct {
				URI text `json:"AdditionalDataURI"`
			}
			Next link `json:"Members@odata.nextLink"`
		}
		if _, err := c.get(ctx, path, &part); err != nil {
			return nil, err
		}
		for _, m := range part.Members {
			if at, ok := cleanPath(string(m.URI)); ok {
				list = append(list, at)
			}
		}
		path = string(part.Next)
	}
	return list, nil
}
