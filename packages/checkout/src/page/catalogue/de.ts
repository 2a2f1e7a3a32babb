import type { Catalogue } from './catalogue.ts'

export const de: Catalogue<'one' | 'other'> = {
  payment: 'Zahlung',
  payTo: 'An {merchant} zahlen',
  paidTitle: 'Bezahlt',
  language: 'Sprache',
  details: 'Einzelheiten',
  order: 'Bestellung',
  invoice: 'Rechnung',
  rate: 'Kurs',

  choose: 'Womit möchten Sie zahlen?',
  chooseHint: 'Wählen Sie eine Währung und das Netzwerk, über das Sie senden.',
  onNetwork: 'Netzwerk {network}',
  tagNeeded: 'Ihre Wallet muss einen Destination Tag oder ein Memo mitsenden können.',
  change: 'Ändern',
  assetFailed:
    'Diese Währung ist gerade nicht möglich. Bitte wählen Sie eine andere oder versuchen Sie es erneut.',

  amountToSend: 'Zu sendender Betrag',
  amountMissing: 'Noch fehlender Betrag',
  address: 'Adresse',
  destinationTag: 'Destination Tag',
  memo: 'Memo',
  destinationTagWarning:
    'Geben Sie in Ihrer Wallet auch diesen Destination Tag an. Ohne ihn ist die Zahlung verloren.',
  memoWarning: 'Geben Sie in Ihrer Wallet auch dieses Memo an. Ohne es ist die Zahlung verloren.',
  networkWarning:
    'Senden Sie nur {ticker} und nur über das Netzwerk {network}. Alles andere kommt nicht an und kann verloren sein.',
  copy: 'Kopieren',
  copied: 'Kopiert',
  amountCopied: 'Betrag kopiert',
  addressCopied: 'Adresse kopiert',
  destinationTagCopied: 'Destination Tag kopiert',
  memoCopied: 'Memo kopiert',
  copyFailed: 'Kopieren ist hier nicht möglich. Bitte markieren Sie den Text.',
  qrShows: 'Der QR-Code enthält',
  paymentLink: 'Zahlungslink',
  addressOnly: 'Nur Adresse',
  qrOfLink: 'QR-Code mit dem Zahlungslink',
  qrOfAddress: 'QR-Code mit der Adresse',
  openInWallet: 'In Wallet öffnen',

  minutesLeft: { one: 'Noch {n} Minute', other: 'Noch {n} Minuten' },
  payBy: 'Zahlbar bis {time}',
  lastMinutes: 'Noch {time} zum Zahlen',

  waiting: 'Warten auf Ihre Zahlung',
  sendExactly: 'Senden Sie genau diesen Betrag. Der Eingang wird hier von selbst angezeigt.',
  partial: 'Teilweise bezahlt',
  partialDetail: '{paid} sind angekommen. Bitte senden Sie die fehlenden {due}.',
  seen: 'Zahlung eingegangen',
  confirming: 'Wird bestätigt',
  confirmations: { one: '{n} von {m} Bestätigung', other: '{n} von {m} Bestätigungen' },
  mayClose:
    'Das Netzwerk bestätigt sie gerade. Sie müssen nichts mehr tun und können diese Seite schließen.',
  checking: 'Zahlung wird geprüft',
  checkingDetail: 'Ihre Zahlung ist angekommen und wird geprüft. Sie müssen nichts mehr tun.',
  paid: 'Zahlung abgeschlossen',
  paidDetail: 'Vielen Dank. Ihre Zahlung an {merchant} ist abgeschlossen.',
  over: 'Bezahlt, zu viel gesendet',
  overDetail:
    'Sie haben {over} zu viel gesendet. Bitten Sie {merchant} um Rückzahlung und nennen Sie die Rechnung unten.',
  late: 'Zu spät bezahlt',
  lateDetail:
    'Ihre Zahlung kam nach Ablauf der Frist. {merchant} nimmt sie an oder zahlt sie zurück: Melden Sie sich dort ' +
    'und nennen Sie die Rechnung unten.',
  expired: 'Die Zahlungsfrist ist abgelaufen',
  expiredDetail:
    'Senden Sie nichts mehr an diese Adresse. Gehen Sie zurück und beginnen Sie eine neue Zahlung.',
  expiredPartialDetail:
    'Nur {paid} von {total} kamen rechtzeitig an. Melden Sie sich bei {merchant} und nennen Sie die Rechnung unten.',
  invalid: 'Zahlung nicht angenommen',
  invalidDetail:
    '{merchant} nimmt diese Zahlung nicht an. Senden Sie nichts mehr; melden Sie sich dort und nennen Sie die Rechnung unten.',
  cancelled: 'Zahlung storniert',
  cancelledDetail:
    '{merchant} hat diese Rechnung storniert. Senden Sie nichts; falls Sie schon gezahlt haben, melden Sie sich ' +
    'dort und nennen Sie die Rechnung unten.',

  payments: 'Ihre Zahlungen',
  awaitsBlock: 'Wartet auf den ersten Block',
  detected: 'Gesehen',
  confirmed: 'Bestätigt',
  held: 'Wird geprüft',
  reverted: 'Zurückgenommen',
  dropped: 'Zurückgezogen',
  notCounted: 'Zählt nicht',
  viewTransaction: 'Transaktion ansehen',

  receipt: 'Beleg',
  received: 'Erhalten',
  date: 'Datum',
  paidTo: 'Bezahlt an',
  transaction: 'Transaktion',
  print: 'Beleg drucken',

  backTo: 'Zurück zu {merchant}',
  returning: { one: 'Es geht in {n} Sekunde zurück', other: 'Es geht in {n} Sekunden zurück' },
  stay: 'Hier bleiben',
  close: 'Schließen',

  reconnecting: 'Verbindung unterbrochen. Neuer Versuch …',
  loadFailed: 'Die Zahlung konnte nicht geladen werden',
  loadFailedDetail: 'Bitte prüfen Sie Ihre Verbindung.',
  tryAgain: 'Erneut versuchen',
  missing: 'Rechnung nicht gefunden',
  missingDetail: 'Bitte prüfen Sie den Link oder bitten Sie den Händler um einen neuen.',
}
