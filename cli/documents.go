package cli

import (
	"kith/gateway/trusted"
	"kith/graph/generated"
	"kith/graph/selections"
	"kith/web"
)

// trustedDocuments are the documents that clients may name by their ids, with those of the app, if it is served; nil without
// --trusted-documents.
func (c *ServeCmd) trustedDocuments() (*trusted.Documents, error) {
	if c.Trusted == "" {
		return nil, nil
	}
	var app trusted.Manifest
	if c.App {
		var err error
		if app, err = web.Documents(web.Assets()); err != nil {
			return nil, err
		}
	}
	documents, err := trusted.Load(trusted.Folder(c.Trusted), selections.Schemas{Schema: generated.NewSchema(generated.Config{})}, c.limits(), app)
	if err != nil {
		return nil, Misset("trusted-documents", err)
	}
	return documents, nil
}
