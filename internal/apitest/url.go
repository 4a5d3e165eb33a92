package apitest

// URL is where the API answers GraphQL, for programs that ask by themselves.
func (a *API) URL() string { return a.server.URL + "/graphql" }
