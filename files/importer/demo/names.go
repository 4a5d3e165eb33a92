package demo

// culture is a pool of names that go together.
type culture struct{ given, family []string }

// cultures hold names from around the world, in Latin script so that handles can
// be made of them.
var cultures = []culture{
	{[]string{"Maya", "Chidi", "Amara", "Emeka", "Ngozi", "Tunde", "Ifeoma", "Femi", "Zainab", "Obinna", "Folake", "Seyi"},
		[]string{"Okafor", "Adeyemi", "Eze", "Balogun", "Nwosu", "Abiola", "Okonkwo", "Bello", "Adichie", "Ogunleye", "Chukwu", "Lawal"}},
	{[]string{"Mateo", "Lucía", "Diego", "Valentina", "Joaquín", "Camila", "Andrés", "Ximena", "Tomás", "Renata", "Emilio", "Paloma"},
		[]string{"Silva", "Hernández", "Rojas", "Castillo", "Muñoz", "Vargas", "Quiroga", "Paredes", "Ibáñez", "Salazar", "Cárdenas", "Ríos"}},
	{[]string{"Aarav", "Priya", "Rohan", "Ananya", "Vikram", "Isha", "Kabir", "Meera", "Arjun", "Diya", "Nikhil", "Tara"},
		[]string{"Sharma", "Patel", "Iyer", "Mukherjee", "Reddy", "Kapoor", "Nair", "Deshpande", "Gill", "Banerjee", "Menon", "Joshi"}},
	{[]string{"Wei", "Jing", "Hao", "Xiu", "Ming", "Lan", "Jun", "Yue", "Tao", "Mei", "Feng", "Qing"},
		[]string{"Zhang", "Liu", "Chen", "Huang", "Zhao", "Wu", "Zhou", "Xu", "Sun", "Gao", "Lin", "Tang"}},
	{[]string{"Haruto", "Yui", "Ren", "Sakura", "Sōta", "Hina", "Kaito", "Aoi", "Daiki", "Mio", "Takumi", "Nanami"},
		[]string{"Satō", "Tanaka", "Watanabe", "Kobayashi", "Nakamura", "Yoshida", "Mori", "Hayashi", "Fujita", "Ogawa", "Ishikawa", "Endō"}},
	{[]string{"Seojun", "Jiwoo", "Minho", "Soyeon", "Hyun", "Eunji", "Taeyang", "Nari", "Jihoon", "Sena", "Dohyun", "Yuna"},
		[]string{"Kim", "Park", "Choi", "Jung", "Kang", "Yoon", "Jang", "Lim", "Shin", "Kwon", "Hwang", "Bae"}},
	{[]string{"Omar", "Layla", "Yusuf", "Noor", "Karim", "Salma", "Tariq", "Huda", "Samir", "Rania", "Bilal", "Dalia"},
		[]string{"Haddad", "Mansour", "Khalil", "Nasser", "Aziz", "Sabbagh", "Farouk", "Jaber", "Qasim", "Rahal", "Darwish", "Shaheen"}},
	{[]string{"Lena", "Jonas", "Mia", "Lukas", "Jürgen", "Greta", "Felix", "Sören", "Klara", "Moritz", "Änne", "Till"},
		[]string{"Müller", "Schneider", "Weber", "Wagner", "Becker", "Köhler", "Krüger", "Vogt", "Lorenz", "Brandt", "Jäger", "Seidel"}},
	{[]string{"Camille", "Hugo", "Zoé", "Léa", "Théo", "Chloé", "Baptiste", "Inès", "Rémi", "Margaux", "Étienne", "Solène"},
		[]string{"Dubois", "Lefèvre", "Moreau", "Girard", "Fontaine", "Chevalier", "Rousseau", "Mercier", "Blanchard", "Garnier", "Perrin", "Delacroix"}},
	{[]string{"João", "Beatriz", "Rafael", "Larissa", "Thiago", "Mariana", "Caio", "Letícia", "Davi", "Júlia", "Otávio", "Yasmin"},
		[]string{"Almeida", "Barbosa", "Cardoso", "Ferreira", "Gonçalves", "Moura", "Nascimento", "Pereira", "Ribeiro", "Teixeira", "Araújo", "Conceição"}},
	{[]string{"Oliver", "Aoife", "Liam", "Niamh", "Harry", "Freya", "Callum", "Isla", "Rhys", "Bronwen", "Declan", "Imogen"},
		[]string{"Murphy", "Walsh", "Campbell", "Hughes", "Byrne", "Davies", "Fraser", "Whitfield", "Gallagher", "Pritchard", "Doyle", "Ashworth"}},
	{[]string{"Astrid", "Lars", "Ingrid", "Nils", "Freja", "Bjørn", "Signe", "Åke", "Maja", "Eirik", "Tove", "Håkon"},
		[]string{"Lindqvist", "Johansen", "Bergström", "Nygård", "Sørensen", "Dahl", "Hagen", "Virtanen", "Lund", "Ekström", "Østby", "Korhonen"}},
	{[]string{"Zofia", "Jakub", "Hanna", "Szymon", "Maja", "Tomasz", "Oliwia", "Marek", "Łucja", "Piotr", "Kinga", "Michał"},
		[]string{"Nowak", "Wójcik", "Kamińska", "Zieliński", "Dąbrowska", "Mazur", "Jabłońska", "Pawlak", "Wróbel", "Sikora", "Górski", "Baran"}},
	{[]string{"Oksana", "Andriy", "Daryna", "Taras", "Milena", "Bohdan", "Vesna", "Luka", "Iryna", "Ostap", "Solomiya", "Danylo"},
		[]string{"Shevchenko", "Kovalenko", "Petrović", "Bondar", "Horvat", "Lysenko", "Tkachuk", "Marković", "Savchenko", "Novák", "Dvořák", "Kolar"}},
	{[]string{"Elif", "Emre", "Zeynep", "Can", "Defne", "Kerem", "Aylin", "Ozan", "Selin", "Barış", "Gül", "Çağla"},
		[]string{"Yılmaz", "Kaya", "Demir", "Şahin", "Çelik", "Aydın", "Arslan", "Doğan", "Koç", "Özdemir", "Polat", "Erdem"}},
	{[]string{"Dariush", "Shirin", "Arash", "Parisa", "Kian", "Nasrin", "Babak", "Golnaz", "Siavash", "Mina", "Ramin", "Azadeh"},
		[]string{"Rostami", "Hosseini", "Farahani", "Moradi", "Karimi", "Tehrani", "Kazemi", "Sadeghi", "Bahrami", "Nouri", "Shirazi", "Amini"}},
	{[]string{"Giulia", "Marco", "Chiara", "Matteo", "Elisa", "Davide", "Sofia", "Lorenzo", "Noemi", "Pietro", "Alessia", "Nicolò"},
		[]string{"Rossi", "Bianchi", "Ricci", "Marino", "Greco", "Conti", "Fontana", "Caruso", "Ferrara", "Gatti", "Vitale", "Lombardi"}},
	{[]string{"Linh", "Minh", "Thảo", "Quân", "Hương", "Tuấn", "Trang", "Long", "Ngọc", "Duy", "Vy", "Khang"},
		[]string{"Nguyễn", "Trần", "Phạm", "Hoàng", "Vũ", "Đặng", "Bùi", "Đỗ", "Hồ", "Ngô", "Dương", "Lý"}},
	{[]string{"Wanjiru", "Otieno", "Abebe", "Makena", "Kipchoge", "Tsehay", "Juma", "Amina", "Baraka", "Neema", "Dawit", "Selam"},
		[]string{"Kamau", "Odhiambo", "Tesfaye", "Mwangi", "Njoroge", "Bekele", "Kiprono", "Wambui", "Mutua", "Hailu", "Omondi", "Girma"}},
	{[]string{"Putri", "Rizky", "Dewi", "Bayu", "Aroha", "Tane", "Leilani", "Keanu", "Marisol", "Jomar", "Siti", "Arif"},
		[]string{"Wijaya", "Santoso", "Hidayat", "Ngata", "Parata", "Kealoha", "Santos", "Reyes", "Dela Cruz", "Rahman", "Kusuma", "Tupou"}},
}

// folds turns the letters of the names into those of handles.
var folds = map[rune]string{
	'á': "a", 'ã': "a", 'ä': "ae", 'å': "a", 'ą': "a", 'ầ': "a", 'ả': "a", 'ạ': "a", 'à': "a", 'â': "a", 'ấ': "a", 'ặ': "a",
	'ç': "c", 'ć': "c", 'č': "c", 'é': "e", 'è': "e", 'ê': "e", 'ễ': "e", 'ę': "e", 'ğ': "g",
	'í': "i", 'ı': "i", 'ł': "l", 'ñ': "n", 'ń': "n", 'ó': "o", 'ò': "o", 'ō': "o", 'ö': "oe", 'ø': "o", 'ọ': "o", 'ỗ': "o", 'ồ': "o", 'ô': "o", 'ơ': "o",
	'ř': "r", 'ş': "s", 'ú': "u", 'ü': "ue", 'ũ': "u", 'ù': "u", 'ư': "u", 'ý': "y", 'đ': "d", ' ': "",
}

var roles = []string{
	"Nurse", "Architect", "Baker", "Teacher", "Illustrator", "Software engineer", "Journalist", "Carpenter", "Marine biologist", "Chef",
	"Translator", "Photographer", "Physiotherapist", "Potter", "Librarian", "Sound engineer", "Gardener", "Data analyst", "Midwife", "Film editor",
	"Bike mechanic", "Historian", "Vet", "Urban planner", "Cellist", "Beekeeper", "Economist", "Set designer", "Geologist", "Tailor",
}

var cities = []string{
	"Lagos", "Buenos Aires", "Pune", "Chengdu", "Osaka", "Busan", "Beirut", "Leipzig", "Lyon", "Recife", "Cork", "Gothenburg", "Kraków", "Lviv",
	"İzmir", "Shiraz", "Bologna", "Đà Nẵng", "Nairobi", "Bandung", "Wellington", "Montréal", "Accra", "Lisbon", "Oaxaca", "Tbilisi", "Tunis", "Glasgow",
}

var interests = []string{
	"long walks", "maps", "sourdough", "old synthesisers", "open water", "chess", "birds", "city trees", "night trains", "bad puns", "trail running",
	"printmaking", "black coffee", "football on Sundays", "crosswords", "jazz", "climbing", "home-grown chillies", "science fiction", "letter writing",
	"film cameras", "tea", "folk songs", "street food", "board games", "knitting", "tide tables", "cricket", "second-hand books", "sea kayaks",
}
