import { notBuilt, type Answer } from '@custody/site'
import { reasonOf } from '@custody/chains/reason'
import type { Logger } from 'pino'

/**
 * Returns a built site; responds 503 if it is missing. The platform runs without it, and the error
 * names the command that builds it.
 * @param what name of the site, for example `the checkout page`
 * @param without the function that is unavailable without the site
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
