import type { HeadState } from '../../../core/engine/endpoints/current.ts'
import { callPlatform } from '../connect.ts'
import { need, type Run } from './typed.ts'

const endpointLine = ({ name, head, doubt }: HeadState): string =>
  `${name}: ${head === null ? 'no answer' : `block ${head.height}`}${doubt === null ? '' : ` (${doubt})`}`

export const acceptReorg: Run = async ({ home, words }) => {
  const [network, height, hash] = words
  const result = await callPlatform(home, 'chain accept-reorg', { network, height, hash })
  const { known, accepted } = result as { known: string; accepted: string }
  return {
    result,
    text: [
      `block ${height} of ${network} is ${accepted}, no longer ${known}`,
      'what the former blocks booked is taken back, and the network credits and pays again',
    ],
  }
}

export const trust: Run = async ({ home, words, values }) => {
  const result = await callPlatform(home, 'endpoint trust', {
    network: words[0],
    for: need(values, 'for'),
  })
  const {
    network,
    trusted_until: until,
    endpoints,
  } = result as {
    network: string
    trusted_until: string
    endpoints: HeadState[]
  }
  const said =
    values['for'] === '0'
      ? `the endpoints of ${network} are not trusted beyond their newest block`
      : `the endpoints of ${network} are trusted until ${until}`
  return { result, text: [said, ...endpoints.map(endpointLine)] }
}
