package cli

import (
	"kith/gateway/trusted"
	"kith/web"
)

// trustedDocuments are the documents that clients may name by their ids, with those of the app, if it is served; nil without
// --trusted-documents.
func (c *ServeCmd) trustedDocuments() (*trusted.Documents, error) {
	if c.Trusted == "" {
		return nil, nil
	}
	var app trusted.Manifest
	if c.servesApp() {
		var err error
		if app, err = web.Documents(web.Assets()); err != nil {
			return nil, err
		}
	}
	documents, err := trusted.Load(trusted.Folder(c.Trusted), c.shape().schemas(nil), c.limits(), app)
	return documents, Misset("trusted-documents", err)
}
