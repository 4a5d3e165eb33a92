// An OpenID provider on a port of this machine. It prints its issuer, then `ok` for each command that it reads:
// `rotate` signs with a new key and forgets the old one, `ttl N` gives access tokens N seconds.
import { createServer } from 'node:http';
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { createInterface } from 'node:readline';
import Provider from 'oidc-provider';

console.info = console.warn = () => {};
const server = createServer((request, response) => handle(request, response));
server.listen(0, '127.0.0.1');
await new Promise((listening) => server.once('listening', listening));
const issuer = `http://127.0.0.1:${server.address().port}`;
let ttl = 300;
let handle;

// Sessions and tokens outlive a change of keys: the library's own store belongs to one provider.
const kept = new Map();
class Kept {
  constructor(kind) { this.kind = kind; }
  key(id) { return `${this.kind} ${id}`; }
  async upsert(id, payload) { kept.set(this.key(id), payload); }
  async find(id) { return kept.get(this.key(id)); }
  async findByUid(uid) { return [...kept].find(([key, payload]) => key.startsWith(`${this.kind} `) && payload.uid === uid)?.[1]; }
  async findByUserCode() {}
  async destroy(id) { kept.delete(this.key(id)); }
  async consume(id) { kept.get(this.key(id)).consumed = Math.floor(Date.now() / 1000); }
  async revokeByGrantId(grant) { for (const [key, payload] of kept) if (payload.grantId === grant) kept.delete(key); }
}

function begin() {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const provider = new Provider(issuer, {
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), alg: 'RS256', use: 'sig' }] },
    adapter: Kept,
    cookies: { keys: ['one that tests may know'] },
    pkce: { required: () => false },
    scopes: ['openid', 'offline_access', 'act-as'],
    clients: [
      { client_id: 'app', client_secret: 'known', redirect_uris: ['http://127.0.0.1/callback'], grant_types: ['authorization_code', 'refresh_token'] },
      { client_id: 'backend', client_secret: 'known', redirect_uris: [], response_types: [], grant_types: ['client_credentials'] },
    ],
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    issueRefreshToken: () => true,
    features: {
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => 'urn:kith',
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({ scope: 'act-as', audience: 'kith', accessTokenFormat: 'jwt', accessTokenTTL: ttl, jwt: { sign: { alg: 'RS256' } } }),
      },
    },
  });
  handle = provider.callback();
}

begin();
process.stdout.write(`${issuer}\n`);
createInterface({ input: process.stdin }).on('line', (line) => {
  const [command, value] = line.split(' ');
  if (command === 'ttl') ttl = Number(value);
  if (command === 'rotate') begin();
  process.stdout.write('ok\n');
}).on('close', () => process.exit());
