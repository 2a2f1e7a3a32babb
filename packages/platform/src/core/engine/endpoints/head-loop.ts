import type { Chain } from '../chain.ts'
import type { Loop } from '../loops/loop.ts'

const EVERY_MS = 60_000

/**
 * Creates the loop that fails while all endpoints of a network that answer are behind, so that
 * readiness, `custody doctor` and the alert about failing loops say which and why. An endpoint that
 * does not answer is reported by the loop that reads blocks. It succeeds while the operator trusts the
 * endpoints.
 * @param follows whether this process reads the blocks of the network
 */
export const headLoop = (
  { network, belief }: Pick<Chain, 'network' | 'belief'>,
  follows: () => boolean,
): Loop => ({
  name: `head ${network.code}`,
  everyMs: EVERY_MS,
  async run() {
    if (!follows()) return false
    const answered = ((await belief?.states({ isTrusted: true })) ?? []).filter(
      ({ head }) => head !== null,
    )
    if (answered.length > 0 && answered.every(({ doubt }) => doubt !== null))
      throw new Error(
        `transfers wait for a current endpoint (${answered.map(({ name, doubt }) => `${name}: ${String(doubt)}`).join('; ')})`,
      )
    return false
  },
})
