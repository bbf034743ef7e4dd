// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"net/http"
	"strconv"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/web/view"
)

// route is a page and the same as JSON, made from one model.
type route struct {
	page     string // pattern of the page's path; empty: it has no page of this kind
	api      string // pattern of the JSON's path
	template string
	title    string // of the page, and of the entry in the navigation
	nav      bool
	live     string // "page": it is read again at every change; "nodes": what is drawn is changed; "": it stays
	summary  string // of the JSON, for OpenAPI
	params   []param
	model    any // a value of the type that read returns
	read     func(ctx context.Context, k *view.Keeper, r *http.Request) (any, error)
}

// param is a parameter in the query.
type param struct{ name, about string }

// prefix is where the JSON is.
const prefix = "/api/v1"

// pageParam is the parameter of lists that have pages.
var pageParam = param{"page", "number of the page, from 1"}

// routes are all pages.
var routes = []route{
	{page: "/{$}", api: "/overview", template: "overview", title: "Overview", nav: true, live: "nodes", model: view.Overview{},
		summary: "Where the whole site stands: nodes by state, what is not up, racks with what stands in them",
		read:    func(ctx context.Context, k *view.Keeper, _ *http.Request) (any, error) { return k.Overview(ctx) }},
	{page: "/nodes", api: "/nodes", template: "nodes", title: "Nodes", nav: true, live: "page", model: view.Nodes{},
		summary: "The nodes, a page of them", params: []param{{"state", "only nodes in this state"}, {"rack", "only nodes in this rack"}, {"role", "only nodes of this role"}, {"text", "only nodes with this in their name or in what they do"}, pageParam},
		read: func(ctx context.Context, k *view.Keeper, r *http.Request) (any, error) {
			return k.Nodes(ctx, view.NodeFilter{State: why.Status(r.FormValue("state")), Rack: r.FormValue("rack"), Role: r.FormValue("role"), Text: r.FormValue("text"), Page: numberOf(r)})
		}},
	{page: "/node/{name}", api: "/nodes/{name}", template: "node", title: "Node", live: "page", model: view.Node{},
		summary: "One node: why it is not up, its steps in time, what happened, findings, measurements against limits, its console",
		read: func(ctx context.Context, k *view.Keeper, r *http.Request) (any, error) {
			return k.Node(ctx, r.PathValue("name"))
		}},
	{page: "/rack/{name}", api: "/racks/{name}", template: "rack", title: "Rack", live: "page", model: view.Rack{},
		summary: "One rack with all that stands in it",
		read: func(ctx context.Context, k *view.Keeper, r *http.Request) (any, error) {
			return k.RackOf(ctx, r.PathValue("name"))
		}},
	{page: "/row/{name}", api: "/rows/{name}", template: "row", title: "Row", live: "nodes", model: view.Row{},
		summary: "One row of racks",
		read: func(ctx context.Context, k *view.Keeper, r *http.Request) (any, error) {
			return k.RowOf(ctx, r.PathValue("name"))
		}},
	{page: "/findings", api: "/findings", template: "findings", title: "Findings", nav: true, live: "page", model: view.Findings{},
		summary: "What was found, as a work order in the order of a walk past the racks",
		read:    func(ctx context.Context, k *view.Keeper, _ *http.Request) (any, error) { return k.Findings(ctx) }},
	{page: "/finding/{name}", api: "/findings/{name}", template: "finding", title: "Finding", model: view.FindingPage{},
		summary: "All findings of one name, such as f-k2q9va",
		read: func(ctx context.Context, k *view.Keeper, r *http.Request) (any, error) {
			return k.Finding(ctx, r.PathValue("name"))
		}},
	{page: "/fabrics", api: "/fabrics", template: "fabrics", title: "Fabrics", nav: true, model: view.Fabrics{},
		summary: "The fabrics, with how their cables were found",
		read:    func(ctx context.Context, k *view.Keeper, _ *http.Request) (any, error) { return k.Fabrics(ctx) }},
	{page: "/fabric/{name}", api: "/fabrics/{name}", template: "fabric", title: "Fabric", model: view.Fabric{},
		summary: "One fabric: its cables as intended and as found, a page of them", params: []param{{"state", "only cables in this state"}, {"text", "only cables with this in the name of an end"}, pageParam},
		read: func(ctx context.Context, k *view.Keeper, r *http.Request) (any, error) {
			return k.Fabric(ctx, r.PathValue("name"), view.CableFilter{State: r.FormValue("state"), Text: r.FormValue("text"), Page: numberOf(r)})
		}},
	{page: "/switch/{name...}", api: "/switches/{name...}", template: "switch", title: "Switch", live: "page", model: why.SwitchExplanation{},
		summary: "One switch, or one port of it: how it was found, and its cables",
		read: func(ctx context.Context, k *view.Keeper, r *http.Request) (any, error) {
			return k.Switch(ctx, r.PathValue("name"))
		}},
	{page: "/plan", api: "/plan", template: "plan", title: "Plan", nav: true, live: "page", model: view.Plan{},
		summary: "The plan that waits for its approval, or of the active run, or of the last one, or a saved one: what is done to which nodes and why, what is erased, refusals, waves and gates", params: []param{{"node", "the steps of this node as well"}, {"file", "a saved plan in the site's folder"}},
		read: func(ctx context.Context, k *view.Keeper, r *http.Request) (any, error) {
			return k.Plan(ctx, view.PlanRequest{Node: r.FormValue("node"), File: r.FormValue("file")})
		}},
	{api: "/report", title: "Report", model: report.Input{}, summary: "The acceptance report, as `ironrail report --json` prints it",
		read: func(ctx context.Context, k *view.Keeper, _ *http.Request) (any, error) { return k.Report(ctx) }},
	{page: "/events", api: "/events", template: "events", title: "Events", nav: true, live: "page", model: view.Events{},
		summary: "What happened, the newest first, a page of it", params: []param{{"node", "only of this node"}, {"type", "only events of this type"}, pageParam},
		read: func(ctx context.Context, k *view.Keeper, r *http.Request) (any, error) {
			return k.Events(ctx, view.EventFilter{Node: r.FormValue("node"), Type: event.Type(r.FormValue("type")), Page: numberOf(r)})
		}},
	{page: "/search", api: "/search", template: "search", title: "Search", model: view.Search{},
		summary: "Nodes, switches, racks and findings by name, serial, MAC, GUID or address", params: []param{{"q", "what to search, at most 200 bytes"}},
		read: func(ctx context.Context, k *view.Keeper, r *http.Request) (any, error) {
			q := r.FormValue("q")
			return k.Search(ctx, q[:min(len(q), 200)])
		}},
}

// numberOf is the page that is asked for; 1 where that is no number.
func numberOf(r *http.Request) int {
	n, err := strconv.Atoi(r.FormValue("page"))
	if err != nil {
		return 1
	}
	return n
}
