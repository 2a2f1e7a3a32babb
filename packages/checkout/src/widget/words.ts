interface Words {
  pay: string
  close: string
  title: string
  refused: string
  open: string
}

/** Texts of the widget itself; all others are in the page in its frame. */
const WORDS: Record<string, Words> = {
  en: {
    pay: 'Pay with crypto',
    close: 'Close',
    title: 'Payment',
    refused: 'The payment cannot be shown here.',
    open: 'Open the payment page',
  },
  de: {
    pay: 'Mit Krypto zahlen',
    close: 'Schließen',
    title: 'Zahlung',
    refused: 'Die Zahlung kann hier nicht angezeigt werden.',
    open: 'Zahlungsseite öffnen',
  },
  es: {
    pay: 'Pagar con cripto',
    close: 'Cerrar',
    title: 'Pago',
    refused: 'El pago no se puede mostrar aquí.',
    open: 'Abrir la página de pago',
  },
  ru: {
    pay: 'Оплатить криптовалютой',
    close: 'Закрыть',
    title: 'Оплата',
    refused: 'Оплату нельзя показать здесь.',
    open: 'Открыть страницу оплаты',
  },
  zh: {
    pay: '用加密货币付款',
    close: '关闭',
    title: '付款',
    refused: '无法在此处显示付款页面。',
    open: '打开付款页面',
  },
  ar: {
    pay: 'الدفع بالعملات المشفرة',
    close: 'إغلاق',
    title: 'الدفع',
    refused: 'لا يمكن عرض الدفع هنا.',
    open: 'فتح صفحة الدفع',
  },
}

/** Returns the texts for the language of the shop's page, or English if it is not available. */
export function wordsOfPage(): { language: string | null; words: Words } {
  const language = document.documentElement.lang.toLowerCase().split('-')[0] as string
  const isKnown = Object.hasOwn(WORDS, language)
  return { language: isKnown ? language : null, words: WORDS[isKnown ? language : 'en'] as Words }
}
