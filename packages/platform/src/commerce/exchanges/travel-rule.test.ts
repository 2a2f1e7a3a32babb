import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stagedVenue } from '../../../testing/venues/venue-scripts.ts'
import { VenueError } from './venue.ts'
import { MANNERS } from './venues.ts'

const PATH = '/sapi/v1/localentity/questionnaire-requirements'
/** Entities of Binance whose accounts need a questionnaire for withdrawals. */
const ENTITIES = ['AE', 'AU', 'BH', 'EU', 'FR', 'IN', 'JP', 'KZ', 'NZ', 'PL', 'ZA', 'XX']

test('an account of each local entity of Binance is refused before anything is sent', async () => {
  for (const code of ENTITIES) {
    const { venue, script } = await stagedVenue('binance', {
      [PATH]: { body: { questionnaireCountryCode: code } },
    })
    await assert.rejects(venue.assertWithdrawable(), (error: unknown) => {
      assert.ok(error instanceof VenueError)
      assert.equal(error.kind, 'unsupported')
      assert.match(error.message, new RegExp(`questionnaire ${code} .*field questionnaire`))
      return true
    })
    assert.deepEqual(
      script.requests.filter(({ method }) => method !== 'GET'),
      [],
    )
  }
})

test('an account without a local entity may withdraw, and an unclear answer is an error', async () => {
  for (const body of [
    { questionnaireCountryCode: 'NIL' },
    { questionnaireCountryCode: null },
    {},
  ]) {
    const { venue } = await stagedVenue('binance', { [PATH]: { body } })
    await venue.assertWithdrawable()
  }
  for (const answer of [
    { status: 503, body: 'busy' },
    { body: '<html>' },
    { status: 400, body: { code: -1000, msg: 'unknown' } },
  ]) {
    const { venue } = await stagedVenue('binance', { [PATH]: answer })
    await assert.rejects(venue.assertWithdrawable(), { kind: 'unavailable' })
  }
  for (const exchange of Object.keys(MANNERS).filter((each) => each !== 'binance')) {
    const { venue, script } = await stagedVenue(exchange, {})
    await venue.assertWithdrawable()
    assert.deepEqual(script.requests, [], exchange)
  }
})

test('the refusal of an ordinary withdrawal by a local entity is definite', async () => {
  const { venue } = await stagedVenue('binance', {
    '/sapi/v1/capital/withdraw/apply': {
      status: 400,
      body: { code: -4104, msg: 'This user is not allowed to use this API.' },
    },
  })
  assert.deepEqual(
    await venue.withdraw(
      {
        clientId: 'x',
        coin: 'BTC',
        network: 'BTC',
        address: 'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq',
        tag: null,
        amount: 10n ** 18n,
        key: null,
      },
      Date.now() + 60_000,
    ),
    { kind: 'refused', code: 'TRAVEL_RULE_REQUIRED' },
  )
})
