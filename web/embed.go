// Package web holds the pages that candid serves, as built from the sources in this directory by
// `make web`. The build output is kept with the sources, so that building candid does not require
// Node.js.
package web

import _ "embed"

// FlameJS is the script of the flame graph's page.
//
//go:embed dist/flame.js
var FlameJS string

// FlameCSS is the style of the flame graph's page.
//
//go:embed dist/flame.css
var FlameCSS string

// ViewJS is the script of the page that `candid view` serves.
//
//go:embed dist/view.js
var ViewJS string

// ViewCSS is the style of that page.
//
//go:embed dist/view.css
var ViewCSS string

// StoreJS is the script of the page of a store.
//
//go:embed dist/store.js
var StoreJS string

// StoreCSS is the style of that page.
//
//go:embed dist/store.css
var StoreCSS string
