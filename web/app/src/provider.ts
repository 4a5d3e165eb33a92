// Signing in at an identity provider: authorization code with PKCE (RFC 7636), as a public client in the browser (OpenID Connect).
import * as oauth from 'oauth4webapi';
import { hostOf, signIns, type Provider, type Renewal, type SignIn, type Token } from './session';

const key = 'kith-sign-in';
const redirectUri = `${location.origin}/app`;
type Begun = { issuer: string; state: string; nonce: string; verifier: string; path: string }; // kept while somebody is at the provider

const options = ({ issuer }: { issuer: string }) => ({
  [oauth.allowInsecureRequests]: issuer.startsWith('http:'), // the gateway allows this for providers on the same machine only
  signal: () => AbortSignal.timeout(10_000),
});

async function meet(issuer: string) {
  const at = signIns.find(one => one.issuer === issuer);
  if (!at) throw new Error('This sign-in was not begun here, or is over. Sign in again.');
  const url = new URL(issuer);
  const server = await oauth
    .discoveryRequest(url, options(at))
    .then(response => oauth.processDiscoveryResponse(url, response))
    .catch(() => Promise.reject(new Error(`${url.host} does not answer this page.`)));
  return { at, server, client: { client_id: at.clientId } };
}

/** Leaves the page for the provider's, which leads back to it. */
export async function begin({ issuer, scopes = [] }: SignIn, path: string) {
  const { server, client } = await meet(issuer);
  const [state, nonce, verifier] = [oauth.generateRandomState(), oauth.generateRandomNonce(), oauth.generateRandomCodeVerifier()];
  sessionStorage.setItem(key, JSON.stringify({ issuer, path, state, nonce, verifier } satisfies Begun));
  const challenge = { code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256' };
  visit(server.authorization_endpoint!, { ...client, ...challenge, state, nonce, redirect_uri: redirectUri, response_type: 'code', scope: ['openid', ...scopes].join(' ') });
}

function visit(endpoint: string, parameters: Record<string, string>) {
  const url = new URL(endpoint);
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  location.assign(url);
}

/** Takes the provider's answer from the page's address, and exchanges its code for tokens. An answer counts once. */
export async function finish(): Promise<Required<Token> & { path: string }> {
  const answer = new URL(location.href);
  history.replaceState(null, '', answer.pathname);
  const { issuer = '', state = '', nonce, verifier = '', path = '/' } = JSON.parse(sessionStorage.getItem(key) ?? '{}') as Partial<Begun>;
  sessionStorage.removeItem(key);
  const { at, server, client } = await meet(issuer);
  try {
    const code = oauth.validateAuthResponse(server, client, answer, state);
    const response = await oauth.authorizationCodeGrantRequest(server, client, oauth.None(), code, redirectUri, verifier, options(at));
    const tokens = await oauth.processAuthorizationCodeResponse(server, client, response, { expectedNonce: nonce, requireIdToken: true });
    return { ...tokenOf({ issuer }, tokens), path };
  } catch (problem) {
    const refused = problem instanceof oauth.AuthorizationResponseError || problem instanceof oauth.ResponseBodyError;
    const why = refused ? (problem.error_description ?? problem.error).slice(0, 200) : (problem as Error).message;
    throw new Error(refused ? `${hostOf(issuer)} refuses to sign you in: ${why}.` : `The answer of ${hostOf(issuer)} is not accepted: ${why}.`);
  }
}

const tokenOf = (before: Provider, { access_token, expires_in = 60, refresh_token, id_token }: oauth.TokenEndpointResponse): Required<Token> => ({
  token: access_token,
  expiresAt: new Date(Date.now() + expires_in * 1_000).toISOString(), // a minute, if the provider does not say
  provider: { ...before, ...(refresh_token && { refreshToken: refresh_token }), ...(id_token && { idToken: id_token }) },
});

/** Asks for another token. The provider may replace the refresh token, too. */
export async function renew(provider: Provider): Promise<Renewal> {
  try {
    const { at, server, client } = await meet(provider.issuer);
    const response = await oauth.refreshTokenGrantRequest(server, client, oauth.None(), provider.refreshToken!, options(at));
    return tokenOf(provider, await oauth.processRefreshTokenResponse(server, client, response));
  } catch (problem) {
    return problem instanceof oauth.ResponseBodyError ? 'refused' : undefined;
  }
}

/** Ends the session at the provider, too, if it has a page for that (OpenID Connect RP-Initiated Logout). */
export async function end({ issuer, idToken = '' }: Provider) {
  const { server, client } = await meet(issuer);
  if (server.end_session_endpoint) visit(server.end_session_endpoint, { ...client, id_token_hint: idToken, post_logout_redirect_uri: redirectUri });
}
