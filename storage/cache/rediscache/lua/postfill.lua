-- Stores a post under a lease. Returns 1 if it was stored, 0 if the lease is no longer held, and
-- -1 if a newer version is known. That there is no post has no version.
-- KEYS: post, stamp.
-- ARGV: token, version, post, TTL in ms, the version in 8 bytes.
local held = redis.call('GETRANGE', KEYS[1], 0, 17 + #ARGV[1])
local stamp = redis.call('GET', KEYS[2])
if string.sub(held, 1, 1) ~= 'M' or string.sub(held, 18) ~= ARGV[1] or string.sub(held, 10, 17) ~= stamp then
  return 0
end
if ARGV[2] ~= '0' and struct.unpack('>i8', held, 2) > tonumber(ARGV[2]) then
  redis.call('SET', KEYS[1], string.sub(held, 1, 9), 'KEEPTTL')
  return -1
end
redis.call('SET', KEYS[1], 'V' .. ARGV[5] .. stamp .. ARGV[3], 'PX', ARGV[4])
return 1
