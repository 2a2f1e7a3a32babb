import { after, before, test } from 'node:test'
import { sendConcurrently } from '../testing/concurrent-transfers.ts'
import { TestPlatform } from '../testing/harness.ts'

/**
 * Tests with more concurrent transfers than in e2e/fees.test.ts, and with a platform that is
 * killed as a process.
 */
const platform = new TestPlatform({ mode: 'prepared' })
before(() => platform.start())
after(() => platform.remove())

test('no nonce is skipped or reused by 200 concurrent transfers of 20 wallets on one tank', () =>
  sendConcurrently(platform, 10))
