// The registry with which the policy language is tested, compared with the one of real networks.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { policyRegistry } from '../packages/chains/src/index.ts'
import { mainnet } from '../packages/chains/testing/support.ts'
import { ASSETS } from '../packages/policy/testing/registry.ts'

test('the registry with which the policy language is tested describes assets as the real one', () => {
  const real = policyRegistry(mainnet)
  for (const [name, asset] of ASSETS) assert.deepEqual(real.asset(name), asset, name)
})
