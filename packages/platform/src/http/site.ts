import { notBuilt, type Answer } from '@custody/site'
import { reasonOf } from '@custody/chains/reason'
import type { Logger } from 'pino'

/**
 * A built site, or 503 in its place: the platform runs without it, and says what to run.
 * @param what e.g. `the checkout page`; @param without what is missing where it was not built
 */
export function siteOr503<Site>(
  what: string,
  load: () => Site,
  log: Logger,
  without: string,
): (answer: (site: Site) => Answer) => Answer {
  try {
    const site = load()
    return (answer) => answer(site)
  } catch (error) {
    log.warn({ err: reasonOf(error) }, without)
    return () => notBuilt(what)
  }
}
