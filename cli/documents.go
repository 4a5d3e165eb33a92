package cli

import (
	"context"

	"kith/gateway/trusted"
	"kith/graph/generated"
	"kith/web"
)

// trustedDocuments are the documents that clients may name by their ids, with those of the app, if it is served; nil without
// --trusted-documents.
func (c *ServeCmd) trustedDocuments(ctx context.Context) (*trusted.Documents, error) {
	if c.Trusted == "" {
		return nil, nil
	}
	var source trusted.Source = trusted.Folder(c.Trusted)
	if c.App {
		app, err := web.Documents(web.Assets())
		if err != nil {
			return nil, err
		}
		source = trusted.All{source, trusted.Manifest(app)}
	}
	documents, err := trusted.Load(ctx, source, generated.NewExecutableSchema(generated.Config{}).Schema(), c.limits())
	if err != nil {
		return nil, Misset("trusted-documents", err)
	}
	return documents, nil
}
