package apitest

// URL is where the API answers GraphQL, for programs that send their own requests.
func (a *API) URL() string { return a.server.URL + "/graphql" }
