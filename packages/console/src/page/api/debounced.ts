import { useEffect, useState } from 'preact/hooks'

const SETTLE_MS = 350

/**
 * Sends a request once the person has stopped typing.
 * @param key value that the response depends on
 */
export function useDebounced<T>(
  work: (() => Promise<T>) | null,
  key: string,
): { data: T | null; isAsking: boolean; failure: string | null } {
  const [state, setState] = useState<{ key: string; data: T | null; failure: string | null }>({
    key: '',
    data: null,
    failure: null,
  })
  useEffect(() => {
    if (work === null) return
    let isGone = false
    const timer = setTimeout(() => {
      work().then(
        (data) => !isGone && setState({ key, data, failure: null }),
        (error: unknown) =>
          !isGone &&
          setState({
            key,
            data: null,
            failure: error instanceof Error ? error.message : String(error),
          }),
      )
    }, SETTLE_MS)
    return () => {
      isGone = true
      clearTimeout(timer)
    }
  }, [key, work === null])
  const isCurrent = state.key === key && work !== null
  return {
    data: isCurrent ? state.data : null,
    isAsking: work !== null && !isCurrent,
    failure: isCurrent ? state.failure : null,
  }
}
