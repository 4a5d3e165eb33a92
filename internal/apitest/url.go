package apitest

// URL is where the API answers GraphQL, for programs that send their own requests.
func (a *API) URL() string { return a.url }

// At is the API that another program serves at a URL, without a path, asked with a token.
func At(t T, url, token string) *API {
	return (&API{t: t, url: url + "/graphql"}).With("Authorization", "Bearer "+token)
}
